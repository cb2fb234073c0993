package outbound

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Secrets in the form of the Standard Webhooks specification.
const (
	secretPrefix         = "whsec_"
	minSecret, maxSecret = 24, 64 // bytes
)

// SecretForm describes the form of a secret.
var SecretForm = fmt.Sprintf("%s and the base64 of %d to %d bytes", secretPrefix, minSecret, maxSecret)

// NewSecret creates a signing secret.
func NewSecret() string {
	var key [32]byte
	rand.Read(key[:]) // never fails: it crashes the program instead
	return secretPrefix + base64.StdEncoding.EncodeToString(key[:])
}

// ParseSecret returns the key of a secret; ok is false if it does not have the [SecretForm].
func ParseSecret(secret string) (key []byte, ok bool) {
	text, prefixed := strings.CutPrefix(secret, secretPrefix)
	key, err := base64.StdEncoding.DecodeString(text)
	return key, prefixed && err == nil && len(key) >= minSecret && len(key) <= maxSecret
}

// Sign sets the headers that let a receiver verify the sender, the time and duplicates. There is
// one signature for each key.
func Sign(header http.Header, keys [][]byte, id string, now time.Time, body []byte) {
	timestamp := strconv.FormatInt(now.Unix(), 10)
	signatures := make([]string, len(keys))
	for i, key := range keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + timestamp + "."))
		mac.Write(body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	header.Set("webhook-id", id)
	header.Set("webhook-timestamp", timestamp)
	header.Set("webhook-signature", strings.Join(signatures, " "))
}
