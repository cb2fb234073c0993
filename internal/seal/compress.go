package seal

import (
	_ "embed"
	"errors"
	"fmt"
	"runtime"

	"github.com/klauspost/compress/zstd"
)

// ErrTooLarge says that a value would be larger than any that was ever packed. Only who has the key can have made it.
var ErrTooLarge = errors.New("box: the value would be too large when unpacked")

const (
	minCompress     = 128      // bytes; less is hardly ever made smaller
	maxDecompressed = 16 << 20 // bytes; more is sealed as it is, and what says that it unpacks to more is refused
)

// dictionary is what most values have in common: the keys and shapes of papers, outcomes and states. Its bytes belong to the format, as a packed
// value refers to them: they never change. A better one gets a number and a version of its own.
//
//go:embed dictionary-1.txt
var dictionary []byte

// dictionaryID is written into each packed value.
const dictionaryID = 1

// maxCompressors is how many values can be packed or unpacked at the same time. Each that packs holds about 800 KiB from its first value on.
func maxCompressors() int { return min(runtime.GOMAXPROCS(0), 4) }

// compressor and unpacker are shared by all boxes. They work on the goroutine of their caller and start none. They are made when the program begins, because
// they hold channels: one that is made in the bubble of a test (testing/synctest) is of no use outside.
var compressor, decompressor = newCompressor(), newDecompressor()

func newCompressor() *zstd.Encoder {
	e, err := zstd.NewWriter(nil,
		zstd.WithEncoderDictRaw(dictionaryID, dictionary),
		zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithAllLitEntropyCompression(true), // texts without a repetition are packed, too
		zstd.WithWindowSize(128<<10), zstd.WithLowerEncoderMem(true), zstd.WithEncoderConcurrency(maxCompressors()),
		zstd.WithSingleSegment(true), // so that each value says how long it is
		zstd.WithEncoderCRC(false),   // the seal is a better one
	)
	if err != nil {
		panic(err) // the options are all constant
	}
	e.EncodeAll(nil, nil) // makes the channel
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

// compress makes data smaller, or says that it cannot.
func compress(data []byte) (packed []byte, smaller bool) {
	if len(data) < minCompress || len(data) > maxDecompressed {
		return nil, false
	}
	packed = compressor.EncodeAll(data, make([]byte, 0, len(data)))
	return packed, len(packed) < len(data)
}

// decompress undoes pack. It takes as much memory as the value says it is long, and that must not be too much.
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
