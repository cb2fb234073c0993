package box

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
	leastPacked = 128      // bytes; less is hardly ever made smaller
	mostPacked  = 16 << 20 // bytes; more is sealed as it is, and what says that it unpacks to more is refused
)

// dictionary is what most values have in common: the keys and shapes of papers, outcomes and states. Its bytes belong to the format, as a packed
// value refers to them: they never change. A better one gets a number and a version of its own.
//
//go:embed dictionary-1.txt
var dictionary []byte

// dictionaryID is written into each packed value.
const dictionaryID = 1

// packers is how many values can be packed or unpacked at the same time. Each that packs holds about 800 KiB from its first value on.
func packers() int { return min(runtime.GOMAXPROCS(0), 4) }

// packer and unpacker are shared by all boxes. They work on the goroutine of their caller and start none. They are made when the program begins, because
// they hold channels: one that is made in the bubble of a test (testing/synctest) is of no use outside.
var packer, unpacker = newPacker(), newUnpacker()

func newPacker() *zstd.Encoder {
	e, err := zstd.NewWriter(nil,
		zstd.WithEncoderDictRaw(dictionaryID, dictionary),
		zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithAllLitEntropyCompression(true), // texts without a repetition are packed, too
		zstd.WithWindowSize(128<<10), zstd.WithLowerEncoderMem(true), zstd.WithEncoderConcurrency(packers()),
		zstd.WithSingleSegment(true), // so that each value says how long it is
		zstd.WithEncoderCRC(false),   // the seal is a better one
	)
	if err != nil {
		panic(err) // the options are all constant
	}
	e.EncodeAll(nil, nil) // makes the channel
	return e
}

func newUnpacker() *zstd.Decoder {
	d, err := zstd.NewReader(nil, //mutate:unpack-memory-limit
		zstd.WithDecoderDictRaw(dictionaryID, dictionary),
		zstd.WithDecoderConcurrency(packers()), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(mostPacked), zstd.WithDecodeAllCapLimit(true),
	)
	if err != nil {
		panic(err)
	}
	return d
}

// pack makes data smaller, or says that it cannot.
func pack(data []byte) (packed []byte, smaller bool) {
	if len(data) < leastPacked || len(data) > mostPacked {
		return nil, false
	}
	packed = packer.EncodeAll(data, make([]byte, 0, len(data)))
	return packed, len(packed) < len(data)
}

// unpack undoes pack. It takes as much memory as the value says it is long, and that must not be too much.
func unpack(packed []byte) ([]byte, error) {
	var head zstd.Header
	switch err := head.Decode(packed); {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrSealed, err)
	case !head.HasFCS || head.DictionaryID != dictionaryID:
		return nil, ErrSealed
	case head.FrameContentSize > mostPacked: //mutate:unpack-limit
		return nil, ErrTooLarge
	}
	data, err := unpacker.DecodeAll(packed, make([]byte, 0, head.FrameContentSize))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSealed, err)
	}
	return data, nil
}
