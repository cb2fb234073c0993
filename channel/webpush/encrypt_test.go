package webpush

import (
	"bytes"
	"crypto/ecdh"
	"encoding/base64"
	"strings"
	"testing"
)

// The example of RFC 8291, section 5 and appendix A.
func TestEncrypt_ExampleOfRFC8291(t *testing.T) {
	raw := func(text string) []byte {
		t.Helper()
		data, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	sender, err := ecdh.P256().NewPrivateKey(raw("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"))
	if err != nil {
		t.Fatal(err)
	}
	s := Subscription{P256DH: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4", Auth: "BTBZMqHH6r4Tts7J_aSIgg"}
	plain := []byte("When I grow up, I want to be a watermelon")
	got, err := encryptWith(s, plain, sender, raw("DGv6ra1nlYgDCS1FRnbzlw"), len(plain))
	if err != nil {
		t.Fatal(err)
	}
	want := raw("DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN")
	if !bytes.Equal(got, want) {
		t.Errorf("encrypted to %s", base64.RawURLEncoding.EncodeToString(got))
	}
}

func TestEncrypt_LengthIsInSteps(t *testing.T) {
	private, err := ecdh.P256().NewPrivateKey(bytes.Repeat([]byte{1}, 32))
	if err != nil {
		t.Fatal(err)
	}
	s := Subscription{P256DH: encode(private.PublicKey().Bytes()), Auth: encode(make([]byte, authSize))}
	for length, want := range map[int]int{0: 256, 255: 256, 256: 512, maxPlain: maxPlain} {
		got, err := encrypt(s, []byte(strings.Repeat("x", length)))
		if err != nil || len(got) != want+headerSize+1+tagSize || len(got) > recordSize {
			t.Errorf("%d bytes are encrypted to %d, %v", length, len(got), err)
		}
	}
	if _, err := encrypt(s, make([]byte, maxPlain+1)); err == nil {
		t.Error("a message that is too long was encrypted")
	}
}
