package seal

import (
	_ "embed"
	"errors"
	"fmt"
	"runtime"

	"github.com/klauspost/compress/zstd"
)

// ErrTooLarge is returned if a value would decompress to more than the maximum size. Only an owner
// of the key can create such a value.
var ErrTooLarge = errors.New("seal: decompressed value is too large")

const (
	minCompress = 128 // bytes; smaller values hardly ever compress
	// bytes; larger values are not compressed, and a value that decompresses to more is rejected
	maxDecompressed = 16 << 20
)

// dictionary holds byte sequences that most values share: the keys and shapes of documents,
// outcomes and states. Compressed values refer to its bytes, so they are part of the format and
// never change. A better dictionary needs a new number and a new version.
//
//go:embed dictionary-1.txt
var dictionary []byte

// dictionaryID is written into each compressed value.
const dictionaryID = 1

// maxCompressors is the number of values that can be compressed or decompressed at the same time.
// Each compressor keeps about 800 KiB after its first value.
func maxCompressors() int { return min(runtime.GOMAXPROCS(0), 4) }

// compressor and decompressor are shared by all sealers. They run on the goroutine of the caller
// and start none. They are created at program start because they contain channels: a channel
// created in a testing/synctest bubble cannot be used outside.
var compressor, decompressor = newCompressor(), newDecompressor()

func newCompressor() *zstd.Encoder {
	e, err := zstd.NewWriter(nil,
		zstd.WithEncoderDictRaw(dictionaryID, dictionary),
		zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithAllLitEntropyCompression(true), // also compresses texts without repetitions
		zstd.WithWindowSize(128<<10), zstd.WithLowerEncoderMem(true), zstd.WithEncoderConcurrency(maxCompressors()),
		zstd.WithSingleSegment(true), // so that each value contains its length
		zstd.WithEncoderCRC(false),   // the authentication tag is a better check
	)
	if err != nil {
		panic(err) // all options are constants
	}
	e.EncodeAll(nil, nil) // creates the channel
	return e
}

func newDecompressor() *zstd.Decoder {
	d, err := zstd.NewReader(nil, //mutate:unpack-memory-limit
		zstd.WithDecoderDictRaw(dictionaryID, dictionary),
		zstd.WithDecoderConcurrency(maxCompressors()), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(maxDecompressed), zstd.WithDecodeAllCapLimit(true),
	)
	if err != nil {
		panic(err)
	}
	return d
}

// compress compresses data, or reports that it does not become smaller.
func compress(data []byte) (packed []byte, smaller bool) {
	if len(data) < minCompress || len(data) > maxDecompressed {
		return nil, false
	}
	packed = compressor.EncodeAll(data, make([]byte, 0, len(data)))
	return packed, len(packed) < len(data)
}

// decompress reverses compress. It allocates the size that the value claims, up to a maximum.
func decompress(packed []byte) ([]byte, error) {
	var head zstd.Header
	switch err := head.Decode(packed); {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	case !head.HasFCS || head.DictionaryID != dictionaryID:
		return nil, ErrCorrupt
	case head.FrameContentSize > maxDecompressed: //mutate:unpack-limit
		return nil, ErrTooLarge
	}
	data, err := decompressor.DecodeAll(packed, make([]byte, 0, head.FrameContentSize))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return data, nil
}
