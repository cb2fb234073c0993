package webpush

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"time"
)

// tokenLifetime is how long a VAPID token is valid. RFC 8292 allows 24 hours.
const tokenLifetime = 12 * time.Hour

// Key is the VAPID key of a server. Browsers bind their subscriptions to it.
type Key struct{ private *ecdsa.PrivateKey }

// NewKey returns a random key.
func NewKey() (Key, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return Key{private}, err
}

// ParseKey parses a private key in the form of [Key.Private], which is that of other VAPID programs
// too. The error does not contain the text.
func ParseKey(text string) (Key, error) {
	raw, err := decode(strings.TrimSpace(text))
	if err == nil {
		var private *ecdsa.PrivateKey
		if private, err = ecdsa.ParseRawPrivateKey(elliptic.P256(), raw); err == nil {
			return Key{private}, nil
		}
	}
	return Key{}, errors.New("webpush: the key is not a P-256 private key of 32 bytes in base64url; create one with: fermata channels webpush-key FILE")
}

// Private returns the private key in base64url. It is a secret.
func (k Key) Private() string {
	raw, err := k.private.Bytes()
	if err != nil {
		panic(err) // the curve is P-256
	}
	return encode(raw)
}

// Public returns the public key in base64url, as browsers need it to subscribe.
func (k Key) Public() string {
	raw, err := k.private.PublicKey.Bytes()
	if err != nil {
		panic(err) // the curve is P-256
	}
	return encode(raw)
}

// authorization returns the header that identifies this server to a push service.
func (k Key) authorization(endpoint *url.URL, subject string, now time.Time) (string, error) {
	claims, err := json.Marshal(struct {
		Audience string `json:"aud"`
		Expires  int64  `json:"exp"`
		Subject  string `json:"sub"`
	}{endpoint.Scheme + "://" + endpoint.Host, now.Add(tokenLifetime).Unix(), subject})
	if err != nil {
		return "", err
	}
	token := encode([]byte(`{"typ":"JWT","alg":"ES256"}`)) + "." + encode(claims)
	digest := sha256.Sum256([]byte(token))
	r, s, err := ecdsa.Sign(rand.Reader, k.private, digest[:])
	if err != nil {
		return "", err
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return "vapid t=" + token + "." + encode(signature) + ", k=" + k.Public(), nil
}

func encode(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

// decode reads base64url, with or without padding.
func decode(text string) ([]byte, error) {
	return base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
}
