package seal_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/klauspost/compress/zstd"

	"github.com/fermata-go/fermata/internal/seal"
)

// documentBody returns a typical document.
func documentBody() []byte {
	return fmt.Appendf(nil, `{"v":1,"id":"int_wpbc2py0n5ewy6910rj2zntqrm","rev":1,"state":"open","created":"2026-11-15T21:39:16.835122Z",`+
		`"asked":{"kind":"approval","shown":"b7e3565640d477c3752f174dd0ce40f290fa0d0ab2a8814ffe658ca6abbe195e","words":%d},`+
		`"need":{"groups":[{"from":["anyone"]}],"editable":[""],"verbs":["approve","edit","reject","ask","claim","delegate","snooze"]}}`, 162)
}

// letters returns a text without repetitions and with a small alphabet.
func letters(size int) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, size)
	for i := range text {
		text[i] = 'a' + byte(random.IntN(26))
	}
	return text
}

func noise(size int) []byte {
	random := rand.NewChaCha8([32]byte{1})
	data := make([]byte, size)
	_, _ = random.Read(data)
	return data
}

const overhead = 1 + 8 + 12 + 16 // version, key id, nonce, tag

func TestSealCompressed_ShrinksCompressibleData(t *testing.T) {
	b := newSealer(t, key(t))
	for _, c := range []struct {
		name string
		data []byte
		most int // bytes, in addition to the overhead
	}{
		{"nothing", []byte{}, 0},
		{"a short value is not compressed", []byte(`{"verb":"approve"}`), 18},
		{"noise is not compressed", noise(1000), 1000},
		{"a document, by the dictionary", documentBody(), len(documentBody()) / 2},
		{"a text without a repetition", letters(1 << 10), 700},
		{"a long text", bytes.Repeat(letters(100), 5000), 5000},
		{"the maximum size", make([]byte, 16<<20), 10_000},
		{"larger", make([]byte, 16<<20+1), 16<<20 + 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			sealed := b.SealCompressed("acme/run-1", c.data)
			if len(sealed) > c.most+overhead {
				t.Errorf("%d bytes took %d, want at most %d", len(c.data), len(sealed)-overhead, c.most)
			}
			if got, err := b.Open("acme/run-1", sealed); err != nil || got == nil || !bytes.Equal(got, c.data) {
				t.Errorf("%d bytes came back as %d: %v", len(c.data), len(got), err)
			}
		})
	}
	if b.SealCompressed("a", nil) != nil {
		t.Error("nil became a value")
	}
}

// Cookies are sealed. Their length must not reveal how similar the secret is to data that the
// caller chose.
func TestSeal_LengthDependsOnlyOnDataLength(t *testing.T) {
	b := newSealer(t, key(t))
	for _, data := range [][]byte{documentBody(), make([]byte, 1<<12), letters(100)} {
		if got := len(b.Seal("session cookie", data)); got != len(data)+overhead {
			t.Errorf("%d bytes became %d", len(data), got-overhead)
		}
	}
}

func TestOpen_ChangedOrMovedCompressedValueReturnsError(t *testing.T) {
	b := newSealer(t, key(t))
	sealed := b.SealCompressed("acme/run-1", documentBody())
	if _, err := b.Open("acme/run-2", sealed); !errors.Is(err, seal.ErrCorrupt) {
		t.Errorf("moved: %v", err)
	}
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		if _, err := b.Open("acme/run-1", changed); err == nil {
			t.Errorf("byte %d changed: opened", i)
		}
	}
}

// An attacker with write access to the database must not be able to pass plain text off as
// compressed data, or the other way round.
func TestSealCompressed_VersionIsAuthenticated(t *testing.T) {
	b := newSealer(t, key(t))
	packed := b.SealCompressed("a", documentBody())
	inside := compressor(t).EncodeAll(documentBody(), nil) // a plain text that looks compressed
	for name, sealed := range map[string][]byte{"compressed as text": packed, "text as compressed": b.Seal("a", inside)} {
		for _, version := range []byte{0, 1, 2, 3, 255} {
			changed := bytes.Clone(sealed)
			changed[0] = version
			if _, err := b.Open("a", changed); version != sealed[0] && !errors.Is(err, seal.ErrCorrupt) {
				t.Errorf("%s, version %d: %v", name, version, err)
			}
		}
	}
}

// compressor compresses like the package does, or like an attacker with the key.
func compressor(t *testing.T, options ...zstd.EOption) *zstd.Encoder {
	t.Helper()
	dictionary, err := os.ReadFile("dictionary-1.txt")
	if err != nil {
		t.Fatal(err)
	}
	e, err := zstd.NewWriter(nil, append([]zstd.EOption{
		zstd.WithEncoderDictRaw(1, dictionary), zstd.WithSingleSegment(true), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
	}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// forge seals compressed content by hand.
func forge(t *testing.T, k seal.Key, label string, inside []byte) []byte {
	t.Helper()
	block, err := aes.NewCipher(k[:])
	if err != nil {
		t.Fatal(err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		t.Fatal(err)
	}
	head := bytes.Clone(newSealer(t, k).Seal(label, []byte("x"))[:9])
	head[0] = 2
	return aead.Seal(head, nil, inside, append([]byte{0xff, 2}, label...))
}

func TestOpen_OversizedCompressedValueReturnsErrTooLarge(t *testing.T) {
	k := key(t)
	b := newSealer(t, k)
	bomb := compressor(t).EncodeAll(make([]byte, 16<<20+1), nil)
	if got, err := b.Open("a", forge(t, k, "a", bomb)); !errors.Is(err, seal.ErrTooLarge) {
		t.Errorf("%d bytes for %d: %v", len(got), len(bomb), err)
	}
	fits := compressor(t).EncodeAll(documentBody(), nil)
	if got, err := b.Open("a", forge(t, k, "a", fits)); err != nil || !bytes.Equal(got, documentBody()) {
		t.Errorf("forged with the right size: %v", err) // otherwise the test above proves nothing
	}
}

func TestOpen_MalformedCompressedValueReturnsError(t *testing.T) {
	k := key(t)
	b := newSealer(t, k)
	whole := compressor(t).EncodeAll(documentBody(), nil)
	longer := compressor(t).EncodeAll(append(documentBody(), documentBody()...), nil)
	for name, inside := range map[string][]byte{
		"nothing":                 {},
		"no frame":                []byte("text, not a frame"),
		"cut off":                 whole[:len(whole)-1],
		"without its length":      compressor(t, zstd.WithSingleSegment(false)).EncodeAll(letters(200), nil),
		"by another dictionary":   compressor(t, zstd.WithEncoderDictRaw(2, letters(100))).EncodeAll(documentBody(), nil),
		"by none":                 compressor(t, zstd.WithEncoderDictDelete()).EncodeAll(documentBody(), nil),
		"longer than it says":     append(bytes.Clone(whole[:8]), longer[8:]...),
		"two frames in one value": append(bytes.Clone(whole), whole...),
	} {
		if got, err := b.Open("a", forge(t, k, "a", inside)); !errors.Is(err, seal.ErrCorrupt) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// Compressed values refer to the dictionary. If a byte of it changes, stored values cannot be read.
// A better dictionary needs a new version.
func TestDictionary_IsUnchanged(t *testing.T) {
	dictionary, err := os.ReadFile("dictionary-1.txt")
	if err != nil {
		t.Fatal(err)
	}
	const want = "74e82da7bee771c38204f1cb219df820726882f03bda4107dbb97a1654706361"
	if got := fmt.Sprintf("%x", sha256.Sum256(dictionary)); got != want {
		t.Errorf("the dictionary has digest %s, want %s", got, want)
	}
}

// These values were sealed by the first build with each version. They must always open.
func TestOpen_GoldenValuesOfEveryVersion(t *testing.T) {
	k, err := seal.ParseKey(strings.Repeat("0123456789abcdef", 4))
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"version-1.hex", "version-2.hex"} {
		text, err := os.ReadFile("testdata/" + version)
		if err != nil {
			t.Fatal(err)
		}
		sealed, err := hex.DecodeString(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := newSealer(t, k).Open("acme/run-1", sealed); err != nil || !bytes.Equal(got, documentBody()) {
			t.Errorf("%s: %q, %v", version, got, err)
		}
	}
}

func TestSealCompressed_Concurrent(t *testing.T) {
	b := newSealer(t, key(t))
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for n := range 50 {
				data := append(documentBody(), letters(i*n*7)...)
				if got, err := b.Open("a", b.SealCompressed("a", data)); err != nil || !bytes.Equal(got, data) {
					t.Errorf("%d bytes: %v", len(data), err)
				}
			}
		})
	}
	all.Wait()
}

// FuzzOpen checks that any sealed content is either returned or rejected with an error of the
// package, and that memory use is bounded.
func FuzzOpen(f *testing.F) {
	k := seal.Key{1}
	f.Add([]byte(nil), false)
	f.Add(documentBody(), false)
	f.Add([]byte{0x28, 0xb5, 0x2f, 0xfd, 0xe1, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, true)
	f.Add([]byte{0x28, 0xb5, 0x2f, 0xfd, 0x21, 1, 10, 0x53, 0, 0, 'a'}, true)
	f.Fuzz(func(t *testing.T, data []byte, raw bool) {
		b := newSealer(t, k)
		sealed := b.SealCompressed("a", data)
		if raw {
			sealed = forge(t, k, "a", data)
		}
		got, err := b.Open("a", sealed)
		switch {
		case err == nil && !raw && !bytes.Equal(got, data):
			t.Errorf("%q came back as %q", data, got)
		case err != nil && !raw, err != nil && !errors.Is(err, seal.ErrCorrupt) && !errors.Is(err, seal.ErrTooLarge):
			t.Errorf("%q: %v", data, err)
		case len(got) > 16<<20:
			t.Errorf("%d bytes came of %d", len(got), len(data))
		}
		if _, err := b.Open("a", data); data != nil && err == nil {
			t.Errorf("%q opens but was never sealed", data)
		}
	})
}

// The first compression may happen inside a synctest bubble and the next one outside.
func TestSealCompressed_InsideAndOutsideSynctest(t *testing.T) {
	b := newSealer(t, key(t))
	var sealed []byte
	synctest.Test(t, func(*testing.T) { sealed = b.SealCompressed("a", documentBody()) })
	if got, err := b.Open("a", sealed); err != nil || !bytes.Equal(got, documentBody()) {
		t.Error(err)
	}
	synctest.Test(t, func(t *testing.T) {
		if got, err := b.Open("a", b.SealCompressed("a", documentBody())); err != nil || !bytes.Equal(got, documentBody()) {
			t.Error(err)
		}
	})
}
