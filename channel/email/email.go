package email

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/url"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/ident"
)

// sendTimeout is how long a mail server may take for a message.
const sendTimeout = 30 * time.Second

// Security says how the connection to the mail server is encrypted.
type Security string

// The kinds of encryption. There is none without encryption.
const (
	StartTLS    Security = "starttls" // on port 587 by default
	ImplicitTLS Security = "tls"      // on port 465 by default
)

// Config configures the channel.
type Config struct {
	// Host is the name of the mail server. Port defaults to that of Security.
	Host string
	Port int
	// Security defaults to StartTLS.
	Security Security
	// Username and Password, if set, authenticate the server.
	Username, Password string
	// From is the sender, such as Fermata <fermata@example.com>.
	From string
	// BaseURL is the public address of the server, for links.
	BaseURL string
	// Key signs links. It has at least 32 bytes, the same in all replicas.
	Key []byte
	// LinkLifetime is how long a link decides. Defaults to 24 hours.
	LinkLifetime time.Duration
	// Roots are the certificate authorities of the mail server. Defaults to those of the system.
	Roots *x509.CertPool
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
}

// Channel sends requests by e-mail. Its targets are email:ADDRESS.
type Channel struct {
	config Config
	from   *mail.Address
	domain string

	linkMails linkMails
}

// New returns a channel. It does not connect.
func New(config Config) (*Channel, error) {
	config.Security, config.LinkLifetime = cmp.Or(config.Security, StartTLS), cmp.Or(config.LinkLifetime, 24*time.Hour)
	if config.Now == nil {
		config.Now = time.Now
	}
	from, err := mail.ParseAddress(config.From)
	base, badURL := url.Parse(config.BaseURL)
	switch {
	case config.Host == "":
		return nil, errors.New("email: the mail server is missing")
	case err != nil:
		return nil, fmt.Errorf("email: the sender %q is not an address", config.From)
	case badURL != nil || base.Host == "" || base.Scheme != "https" && base.Scheme != "http":
		return nil, errors.New("email: links need the public address of this server")
	case len(config.Key) < 32:
		return nil, errors.New("email: the key for links needs at least 32 bytes")
	case config.Port < 0 || config.Port > 65535:
		return nil, fmt.Errorf("email: port %d", config.Port)
	}
	switch config.Security {
	case StartTLS:
		config.Port = cmp.Or(config.Port, 587)
	case ImplicitTLS:
		config.Port = cmp.Or(config.Port, 465)
	default:
		return nil, fmt.Errorf("email: security %q: use %s or %s", config.Security, StartTLS, ImplicitTLS)
	}
	_, domain, _ := strings.Cut(from.Address, "@")
	return &Channel{config: config, from: from, domain: domain}, nil
}

// Kind returns "email".
func (c *Channel) Kind() string { return "email" }

// CheckAddress reports whether a target is an e-mail address.
func (c *Channel) CheckAddress(to string) error {
	if a, err := mail.ParseAddress(to); err != nil || a.Address != to {
		return fmt.Errorf("%q is not an e-mail address", to)
	}
	return nil
}

// The references of a delivery say what was sent.
const (
	sentRequest = "sent"
	sentOutcome = "outcome"
)

// Send sends a message for a new copy, and one when the request has ended.
func (c *Channel) Send(ctx context.Context, m channel.Message) (string, error) {
	to, err := mail.ParseAddress(m.To)
	if err != nil {
		return "", &channel.Error{Code: "invalid_address", Permanent: true, Err: errors.New("the target is not an e-mail address")}
	}
	if m.Ref == sentOutcome || m.Ref != "" && m.Card.Open() {
		return m.Ref, nil
	}
	ref := sentRequest
	if !m.Card.Open() {
		ref = sentOutcome
	}
	message, err := c.compose(m, to, ref)
	if err != nil {
		return "", &channel.Error{Code: "invalid_message", Permanent: true, Err: err}
	}
	if m.Again { // the first message gets the outcome
		ref = ""
	}
	return ref, c.deliver(ctx, message)
}

var _ channel.Tester = (*Channel)(nil)

// Test sends a test message. It has no link that decides.
func (c *Channel) Test(ctx context.Context, to string) (channel.TestResult, error) {
	if err := c.CheckAddress(to); err != nil {
		return channel.TestResult{}, err
	}
	m := channel.TestMessage(to, c.config.Now())
	message, err := c.compose(m, &mail.Address{Address: to}, sentRequest)
	if err == nil {
		err = c.deliver(ctx, message)
	}
	return channel.TestResult{Sent: "the mail server accepted the message to " + to}, err
}

// compose writes a message. The outcome is a reply to the request, so that mail programs show one
// thread.
func (c *Channel) compose(m channel.Message, to *mail.Address, ref string) (*gomail.Msg, error) {
	page := ""
	if m.Card.Open() && m.Kind != channel.NoticeTest && len(m.Card.Actions) > 0 && !needsSignIn(m.Card.Risk, m.Card.MinAuth) {
		page = c.decisionURL(m, to.Address)
	}
	content := newContent(m, page, c.config.BaseURL)
	text, html, err := content.render()
	if err != nil {
		return nil, err
	}
	message := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	if err := errors.Join(message.FromFormat(c.from.Name, c.from.Address), message.To(to.Address)); err != nil {
		return nil, err
	}
	message.Subject(content.Subject)
	message.SetDateWithValue(m.Card.At)
	thread := c.messageID(m, sentRequest)
	message.SetMessageIDWithValue(strings.Trim(c.messageID(m, ref), "<>"))
	if ref == sentOutcome {
		message.SetGenHeader(gomail.HeaderInReplyTo, thread)
		message.SetGenHeader(gomail.HeaderReferences, thread)
	}
	message.SetGenHeader("Auto-Submitted", "auto-generated")
	if m.Kind != desk.NoticeNotify && m.Kind != desk.NoticeRerender {
		message.SetGenHeader(gomail.HeaderListUnsubscribe, "<"+strings.TrimSuffix(c.config.BaseURL, "/")+"/me>")
	}
	message.SetBodyString(gomail.TypeTextPlain, text)
	message.AddAlternativeString(gomail.TypeTextHTML, html)
	return message, nil
}

// messageID returns the same id for each attempt, so that mail programs recognize duplicates.
func (c *Channel) messageID(m channel.Message, part string) string {
	return "<" + ident.Derive("mail", m.Account, m.Delivery, part) + "@" + c.domain + ">"
}

// deliver hands a message to the mail server.
func (c *Channel) deliver(ctx context.Context, message *gomail.Msg) error {
	options := []gomail.Option{
		gomail.WithPort(c.config.Port), gomail.WithTimeout(sendTimeout),
		gomail.WithTLSConfig(&tls.Config{ServerName: c.config.Host, RootCAs: c.config.Roots, MinVersion: tls.VersionTLS12}),
	}
	if c.config.Security == ImplicitTLS {
		options = append(options, gomail.WithSSL())
	} else {
		options = append(options, gomail.WithTLSPolicy(gomail.TLSMandatory))
	}
	if c.config.Username != "" {
		options = append(options, gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover), gomail.WithUsername(c.config.Username), gomail.WithPassword(c.config.Password))
	}
	client, err := gomail.NewClient(c.config.Host, options...)
	if err != nil {
		return &channel.Error{Code: "invalid_configuration", Permanent: true, Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	return classify(client.DialAndSendWithContext(ctx, message))
}

// classify gives the error of a mail server a code. A refusal with a status of 500 or above is
// permanent.
func classify(err error) error {
	if err == nil {
		return nil
	}
	if refused, ok := errors.AsType[*gomail.SendError](err); ok {
		if status := refused.ErrorCode(); status > 0 {
			return &channel.Error{Code: fmt.Sprintf("smtp_%d", status), Permanent: !refused.IsTemp() && status >= 500, Err: err}
		}
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return &channel.Error{Code: "tls_failed", Err: err}
	}
	if slow, ok := errors.AsType[net.Error](err); ok && slow.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return &channel.Error{Code: "timeout", Err: err}
	}
	return &channel.Error{Code: "unreachable", Err: err}
}
