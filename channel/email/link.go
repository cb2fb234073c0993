package email

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/ident"
)

// Path is where the server serves the pages of links.
const Path = "/channels/email/"

// link is what a link says.
type link struct {
	Account string `json:"a"`
	Address string `json:"e"`
	Request string `json:"r"`
	// Digest identifies what the message showed.
	Digest  string `json:"d"`
	Expires int64  `json:"x"`
	// ID identifies the link: it decides once.
	ID string `json:"i"`
}

var (
	errForged  = errors.New("this link is not valid; open the newest message, or the inbox")
	errExpired = errors.New("this link has expired; open the request in the inbox")
)

// decisionURL returns the address of the page that asks for a confirmation.
func (c *Channel) decisionURL(m channel.Message, address string) string {
	l := link{
		Account: m.Account, Address: address, Request: m.Card.Request, Digest: m.Card.Digest, Expires: c.config.Now().Add(c.config.LinkLifetime).Unix(),
		ID: ident.Derive("link", m.Account, m.Delivery, m.Card.Digest),
	}
	return strings.TrimSuffix(c.config.BaseURL, "/") + Path + c.sign(l)
}

// sign returns a link as a token.
func (c *Channel) sign(l link) string {
	body, err := json.Marshal(l)
	if err != nil {
		panic(err) // it has only strings and numbers
	}
	text := base64.RawURLEncoding.EncodeToString(body)
	return text + "." + base64.RawURLEncoding.EncodeToString(c.mac(text))
}

// verify returns the link of a token.
func (c *Channel) verify(token string) (l link, err error) {
	text, sum, ok := strings.Cut(token, ".")
	given, bad := base64.RawURLEncoding.DecodeString(sum)
	if !ok || bad != nil || !hmac.Equal(given, c.mac(text)) {
		return l, errForged
	}
	body, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(body, &l) != nil {
		return l, errForged
	}
	if c.config.Now().After(time.Unix(l.Expires, 0)) {
		return l, errExpired
	}
	return l, nil
}

func (c *Channel) mac(text string) []byte {
	mac := hmac.New(sha256.New, c.config.Key)
	mac.Write([]byte("fermata e-mail link\x00" + text))
	return mac.Sum(nil)
}
