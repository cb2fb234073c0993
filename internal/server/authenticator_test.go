package server_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"testing"
)

// authenticator is a WebAuthn authenticator with one passkey. Tests change its fields to make it
// misbehave.
type authenticator struct {
	testing.TB
	origin, rpID string
	flags        byte // user present, user verified, …
	counter      uint32
	handle       []byte
	id           []byte
	key          *ecdsa.PrivateKey
}

// The flags of authenticator data.
const (
	flagPresent  = 1 << 0
	flagVerified = 1 << 2
	flagSyncable = 1 << 3
	flagNewKey   = 1 << 6
)

func newAuthenticator(t testing.TB, origin, rpID string) *authenticator {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &authenticator{TB: t, origin: origin, rpID: rpID, flags: flagPresent | flagVerified, id: []byte(rand.Text()), key: key}
}

// ceremonyOptions is what a server sends for the creation or the use of a passkey.
type ceremonyOptions struct {
	State   string
	Options struct {
		Challenge string
		User      struct{ ID string }
	}
}

func (a *authenticator) parse(body string) (o ceremonyOptions) {
	a.Helper()
	if err := json.Unmarshal([]byte(body), &o); err != nil || o.Options.Challenge == "" || o.State == "" {
		a.Fatalf("%v: %s", err, body)
	}
	return o
}

// create creates the passkey.
func (a *authenticator) create(o ceremonyOptions) string {
	a.Helper()
	var err error
	if a.handle, err = base64.RawURLEncoding.DecodeString(o.Options.User.ID); err != nil {
		a.Fatal(err)
	}
	public, err := a.key.PublicKey.Bytes() // 4, x, y
	if err != nil {
		a.Fatal(err)
	}
	data := a.data(flagNewKey)
	data = append(data, make([]byte, 16)...) // no model
	data = binary.BigEndian.AppendUint16(data, uint16(len(a.id)))
	data = append(data, a.id...)
	// the COSE key of ES256: {1: 2, 3: -7, -1: 1, -2: x, -3: y}
	data = append(data, 0xa5, 1, 2, 3, 0x26, 0x20, 1, 0x21, 0x58, 32)
	data = append(data, public[1:33]...)
	data = append(data, 0x22, 0x58, 32)
	data = append(data, public[33:]...)
	object := append([]byte("\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x58"), byte(len(data)))
	return a.response(map[string]string{
		"clientDataJSON": encode(a.clientData("webauthn.create", o.Options.Challenge)), "attestationObject": encode(append(object, data...)),
	})
}

// use signs a challenge.
func (a *authenticator) use(o ceremonyOptions) string {
	a.Helper()
	a.counter++
	client, data := a.clientData("webauthn.get", o.Options.Challenge), a.data(0)
	clientHash := sha256.Sum256(client)
	digest := sha256.Sum256(append(data[:len(data):len(data)], clientHash[:]...))
	signature, err := ecdsa.SignASN1(rand.Reader, a.key, digest[:])
	if err != nil {
		a.Fatal(err)
	}
	return a.response(map[string]string{"clientDataJSON": encode(client), "authenticatorData": encode(data), "signature": encode(signature), "userHandle": encode(a.handle)})
}

func (a *authenticator) data(more byte) []byte {
	host := sha256.Sum256([]byte(a.rpID))
	return binary.BigEndian.AppendUint32(append(host[:], a.flags|more), a.counter)
}

func (a *authenticator) clientData(kind, challenge string) []byte {
	data, err := json.Marshal(map[string]any{"type": kind, "challenge": challenge, "origin": a.origin, "crossOrigin": false})
	if err != nil {
		a.Fatal(err)
	}
	return data
}

func (a *authenticator) response(content map[string]string) string {
	data, err := json.Marshal(map[string]any{"id": encode(a.id), "rawId": encode(a.id), "type": "public-key", "clientExtensionResults": map[string]any{}, "response": content})
	if err != nil {
		a.Fatal(err)
	}
	return string(data)
}

func encode(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }
