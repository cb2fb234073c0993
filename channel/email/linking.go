package email

import (
	"net/http"
	"net/mail"
	"sync"
	"time"

	gomail "github.com/wneessen/go-mail"

	"github.com/fermata-go/fermata/channel"
)

// actionLink asks for a message that links the address.
const actionLink = "link"

// linkPause is the shortest time between two such messages to one address.
const linkPause = time.Minute

// linkMails remembers when an address got a message that links it.
type linkMails struct {
	mu   sync.Mutex
	sent map[string]time.Time
}

// allow reports whether an address may get another message now.
func (m *linkMails) allow(address string, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for other, at := range m.sent {
		if now.Sub(at) >= linkPause {
			delete(m.sent, other)
		}
	}
	if _, recent := m.sent[address]; recent {
		return false
	}
	if m.sent == nil {
		m.sent = make(map[string]time.Time)
	}
	m.sent[address] = now
	return true
}

// forget allows another message to an address, after one could not be sent.
func (m *linkMails) forget(address string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sent, address)
}

// sendLink sends the one-time link to the address of the message, and not to the browser: the
// recipient of a forwarded message cannot link the address to themselves.
func (c *Channel) sendLink(w http.ResponseWriter, r *http.Request, desk channel.Desk, l link) {
	done := page{Title: "Look into your mailbox", Problem: "A link was sent to " + l.Address + ". It can be used once, within 15 minutes.", Inbox: desk.RequestURL(l.Request)}
	if !c.linkMails.allow(l.Address, c.config.Now()) {
		c.write(w, http.StatusOK, done)
		return
	}
	to, err := desk.LinkURL(r.Context(), c.sender(l))
	if err == nil {
		var message *gomail.Msg
		if message, err = c.composeLink(&mail.Address{Address: l.Address}, to); err == nil {
			err = c.deliver(r.Context(), message)
		}
	}
	if err != nil {
		c.linkMails.forget(l.Address)
		done.Title, done.Problem = "The link was not sent", "This address cannot be linked now. Open the request in the inbox."
		c.write(w, http.StatusServiceUnavailable, done)
		return
	}
	c.write(w, http.StatusOK, done)
}

// composeLink writes the message with a one-time link.
func (c *Channel) composeLink(to *mail.Address, link string) (*gomail.Msg, error) {
	message := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	if err := message.FromFormat(c.from.Name, c.from.Address); err != nil {
		return nil, err
	}
	if err := message.To(to.Address); err != nil {
		return nil, err
	}
	message.Subject("Link this address to your account")
	message.SetDateWithValue(c.config.Now())
	message.SetMessageID()
	message.SetGenHeader("Auto-Submitted", "auto-generated")
	message.SetBodyString(gomail.TypeTextPlain, "A request was opened with a link from a message to this address. If it was you, open this page\nwithin 15 minutes and sign in. Decisions from messages to this address then count as yours.\n\n"+
		link+"\n\nIf it was not you, ignore this message, and do not forward it. Nothing is linked.\n")
	return message, nil
}
