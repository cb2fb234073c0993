package webpush

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
)

const (
	// recordSize is the size of a message. Every push service accepts 4096 bytes.
	recordSize = 4096
	saltSize   = 16
	publicSize = 65 // bytes of an uncompressed point
	headerSize = saltSize + 4 + 1 + publicSize
	tagSize    = 16
	// padding is the step of the length of messages.
	padding = 256
	// maxPlain is the size of the text of a message, without the byte that ends it.
	maxPlain = recordSize - headerSize - tagSize - 1
)

// encrypt encrypts a message for a browser, in one record of aes128gcm: RFC 8291.
func encrypt(s Subscription, plain []byte) ([]byte, error) {
	private, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	salt := make([]byte, saltSize)
	rand.Read(salt) // it does not fail
	size := min((len(plain)/padding+1)*padding, maxPlain)
	return encryptWith(s, plain, private, salt, size)
}

// encryptWith encrypts with an ephemeral key and a salt, which must not be used again. The text is
// padded to a size.
func encryptWith(s Subscription, plain []byte, private *ecdh.PrivateKey, salt []byte, size int) ([]byte, error) {
	if len(plain) > size || size > maxPlain {
		return nil, errors.New("webpush: the message is too long")
	}
	browser, auth, err := s.keys()
	if err != nil {
		return nil, err
	}
	aead, nonce, err := contentCipher(private, browser, auth, salt)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, recordSize)
	out = append(out, salt...)
	out = binary.BigEndian.AppendUint32(out, recordSize)
	out = append(out, publicSize)
	out = append(out, private.PublicKey().Bytes()...)
	padded := make([]byte, size+1)
	copy(padded, plain)
	padded[len(plain)] = 2 // the end of the text in the last record
	return aead.Seal(out, nonce, padded, nil), nil
}

// contentCipher derives the key and the nonce of the only record.
func contentCipher(private *ecdh.PrivateKey, browser *ecdh.PublicKey, auth, salt []byte) (aead cipher.AEAD, nonce []byte, err error) {
	shared, err := private.ECDH(browser)
	if err != nil {
		return nil, nil, err
	}
	info := "WebPush: info\x00" + string(browser.Bytes()) + string(private.PublicKey().Bytes())
	input, err := hkdf.Key(sha256.New, shared, auth, info, sha256.Size)
	if err != nil {
		return nil, nil, err
	}
	key, err := hkdf.Key(sha256.New, input, salt, "Content-Encoding: aes128gcm\x00", 16)
	if err != nil {
		return nil, nil, err
	}
	if nonce, err = hkdf.Key(sha256.New, input, salt, "Content-Encoding: nonce\x00", 12); err != nil {
		return nil, nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, nil, err
	}
	aead, err = cipher.NewGCM(block)
	return aead, nonce, err
}
