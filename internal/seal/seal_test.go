package seal_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/seal"
)

func key(t *testing.T) seal.Key {
	t.Helper()
	k, err := seal.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func newSealer(t *testing.T, current seal.Key, older ...seal.Key) *seal.Sealer {
	t.Helper()
	b, err := seal.New(current, older...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestOpen_ReturnsSealedData(t *testing.T) {
	b := newSealer(t, key(t))
	for _, data := range [][]byte{nil, {}, []byte("secret"), bytes.Repeat([]byte("x"), 1<<20)} {
		sealed := b.Seal("acme/run-1/answer", data)
		got, err := b.Open("acme/run-1/answer", sealed)
		if err != nil || !bytes.Equal(got, data) || (got == nil) != (data == nil) {
			t.Errorf("%d bytes came back as %d: %v", len(data), len(got), err)
		}
		if len(data) > 0 && bytes.Contains(sealed, data) {
			t.Error("the sealed value contains the plain text")
		}
	}
	if bytes.Equal(b.Seal("a", []byte("x")), b.Seal("a", []byte("x"))) {
		t.Error("equal values have equal ciphertexts")
	}
}

func TestOpen_ChangedOrMovedValueReturnsError(t *testing.T) {
	b := newSealer(t, key(t))
	sealed := b.Seal("acme/run-1", []byte("secret"))
	if _, err := b.Open("acme/run-2", sealed); !errors.Is(err, seal.ErrCorrupt) {
		t.Errorf("moved: %v", err)
	}
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		if _, err := b.Open("acme/run-1", changed); err == nil {
			t.Errorf("byte %d changed: opened", i)
		}
		if _, err := b.Open("acme/run-1", sealed[:i]); err == nil {
			t.Errorf("cut off at %d: opened", i)
		}
	}
}

func TestKeys_OldValuesOpenAfterRotation(t *testing.T) {
	old, fresh := key(t), key(t)
	sealed := newSealer(t, old).Seal("a", []byte("secret"))
	b := newSealer(t, fresh, old)
	if got, err := b.Open("a", sealed); err != nil || string(got) != "secret" {
		t.Errorf("%q, %v", got, err)
	}
	if b.Current(sealed) || !b.Current(b.Seal("a", []byte("x"))) {
		t.Error("Current is wrong")
	}
	if _, err := newSealer(t, fresh).Open("a", sealed); !errors.Is(err, seal.ErrUnknownKey) {
		t.Errorf("without the old key: %v", err)
	}
}

func TestKey_IsNotPrinted(t *testing.T) {
	k := key(t)
	for _, text := range []string{fmt.Sprint(k), fmt.Sprintf("%v %+v %#v %s", k, k, k, k)} {
		if strings.Contains(text, fmt.Sprintf("%x", [32]byte(k))[:8]) {
			t.Errorf("the key is printed: %s", text)
		}
	}
	if _, err := seal.ParseKey("0123"); err == nil || strings.Contains(err.Error(), "0123") {
		t.Errorf("a bad key: %v", err)
	}
}
