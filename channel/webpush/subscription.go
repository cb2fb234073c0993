package webpush

import (
	"crypto/ecdh"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/url"

	"github.com/fermata-go/fermata/internal/strictjson"
)

// authSize is the size of the authentication secret of a subscription.
const authSize = 16

// Subscription is what a browser returns when a person turns on notifications. It is a secret:
// with it and the key of the server, messages can be sent to the browser.
type Subscription struct {
	// Endpoint is the URL at the push service.
	Endpoint string `json:"endpoint"`
	// P256DH is the public key of the browser and Auth its secret, both in base64url.
	P256DH string `json:"p256dh"`
	Auth   string `json:"auth"`
	// Server is the public key of the server that the browser subscribed with.
	Server string `json:"server"`
}

// Address returns the address of the subscription, for [channel.Message].
func (s Subscription) Address() string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // texts can always be encoded
	}
	return string(text)
}

// ParseAddress reads an address.
func ParseAddress(to string) (s Subscription, err error) {
	if err := strictjson.Decode([]byte(to), &s); err != nil {
		return s, errors.New("webpush: the address is not a subscription")
	}
	_, _, err = s.keys()
	return s, err
}

// keys decodes the keys of the browser.
func (s Subscription) keys() (public *ecdh.PublicKey, auth []byte, err error) {
	raw, err := decode(s.P256DH)
	if err == nil {
		public, err = ecdh.P256().NewPublicKey(raw)
	}
	if err != nil {
		return nil, nil, errors.New("webpush: p256dh is not a public key")
	}
	if auth, err = decode(s.Auth); err != nil || len(auth) != authSize {
		return nil, nil, errors.New("webpush: auth does not have 16 bytes")
	}
	return public, auth, nil
}

// Service returns the host of the push service.
func (s Subscription) Service() string {
	if u, err := url.Parse(s.Endpoint); err == nil {
		return u.Hostname()
	}
	return ""
}

// Fingerprint is the SHA-256 of the endpoint in base64url. A browser finds its own subscription by
// it in a list.
func (s Subscription) Fingerprint() string {
	sum := sha256.Sum256([]byte(s.Endpoint))
	return encode(sum[:])
}
