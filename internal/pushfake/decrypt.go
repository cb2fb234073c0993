package pushfake

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
)

// decrypt decrypts a message of one record as RFC 8188 and RFC 8291 describe it for receivers. It
// shares no code with the sender.
func decrypt(b *subscription, body []byte) ([]byte, error) {
	if len(body) < 21 || len(body) < 21+int(body[20])+17 {
		return nil, errors.New("the message is too short")
	}
	salt, size, rest := body[:16], binary.BigEndian.Uint32(body[16:20]), body[21:]
	sender, err := ecdh.P256().NewPublicKey(rest[:body[20]])
	if err != nil {
		return nil, err
	}
	record := rest[body[20]:]
	if uint64(len(record)) > uint64(size) || size < 18 {
		return nil, errors.New("the message has more than one record")
	}
	shared, err := b.private.ECDH(sender)
	if err != nil {
		return nil, err
	}
	mac := func(key []byte, parts ...[]byte) []byte {
		h := hmac.New(sha256.New, key)
		h.Write(bytes.Join(parts, nil))
		return h.Sum(nil)
	}
	one := []byte{1}
	secret := mac(mac(b.auth, shared), []byte("WebPush: info\x00"), b.private.PublicKey().Bytes(), sender.Bytes(), one)
	prk := mac(salt, secret)
	block, err := aes.NewCipher(mac(prk, []byte("Content-Encoding: aes128gcm\x00"), one)[:16])
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	plain, err := aead.Open(nil, mac(prk, []byte("Content-Encoding: nonce\x00"), one)[:12], record, nil)
	if err != nil {
		return nil, err
	}
	plain = bytes.TrimRight(plain, "\x00")
	if len(plain) == 0 || plain[len(plain)-1] != 2 {
		return nil, errors.New("the last record does not end with 2")
	}
	return plain[:len(plain)-1], nil
}
