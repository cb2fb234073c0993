package external

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/provider"
)

// The types of messages.
const (
	typeAnswered      = "request.answered"
	typeExpired       = "request.expired"
	typeWithdrawn     = "request.withdrawn"
	typeClarification = "request.question"
)

// message is the body of a webhook.
type message struct {
	Type string `json:"type"`
	// Timestamp is when it happened, not when it is sent: the body is the same each time.
	Timestamp time.Time   `json:"timestamp"`
	Data      messageData `json:"data"`
}

type messageData struct {
	StateKey  string          `json:"stateKey"`
	Interrupt string          `json:"interrupt"`
	Kind      string          `json:"kind"`
	Answer    json.RawMessage `json:"answer,omitempty"`
	Question  int             `json:"question,omitempty"` // its number, from 1
	Text      string          `json:"text,omitempty"`
	Reason    string          `json:"reason,omitempty"` // why it was withdrawn
	By        string          `json:"by,omitempty"`
	At        time.Time       `json:"at"`
}

// deliver sends the answer, once. It returns nil only if the receiver has it.
func (p *Provider) deliver(ctx context.Context, e provider.Execution, asked request, answer provider.Answer) error {
	said := compose(e.Run, asked, answer)
	// One decision, one id: whoever gets it twice can tell.
	id := ident.Derive("msg", e.Run.Account, e.Run.ID, answer.InterruptID, said.Type)
	return retryError(e.Attempt, p.send(ctx, e.Run.Account, asked.Callback.URL, id, said))
}

// send makes one call with a signed message.
func (p *Provider) send(ctx context.Context, account, to, id string, said message) error {
	target, err := p.guard.parse(to)
	if err != nil { // it was allowed when the run began
		return fmt.Errorf("%w: the callback is not allowed any more: %w", provider.ErrPark, err)
	}
	keys, err := p.keys(ctx, account)
	switch {
	case err != nil:
		return err
	case len(keys) == 0:
		return fmt.Errorf("%w: %w", provider.ErrPark, errNoSecret)
	}
	body, err := json.Marshal(said)
	if err != nil {
		return err
	}
	header := make(http.Header)
	header.Set("Content-Type", "application/json")
	header.Set("User-Agent", "Fermata")
	sign(header, keys, id, time.Now(), body)
	patience, back := p.trackDelivery(account)
	defer back()
	return p.post(ctx, patience, target, header, body)
}

// leaves counts a message of an account that is on its way until it is back, and says how long that may take.
func (p *Provider) trackDelivery(account string) (patience time.Duration, back func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	patience = p.timeout
	if p.inFlight[account] >= busyThreshold {
		patience = min(patience, busyTimeout)
	}
	p.inFlight[account]++
	return patience, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.inFlight[account]--; p.inFlight[account] == 0 {
			delete(p.inFlight, account)
		}
	}
}

// compose makes the message. It is the same each time, in every process.
func compose(run provider.Run, asked request, answer provider.Answer) message {
	at := answer.At.UTC()
	about := messageData{StateKey: run.StateKey, Interrupt: answer.InterruptID, Kind: asked.Kind, At: at}
	if answer.Expired {
		return message{Type: typeExpired, Timestamp: at, Data: about}
	}
	about.Answer, about.By = answer.Data, answer.By
	return message{Type: typeAnswered, Timestamp: at, Data: about}
}

// post makes the call. Its error is a *DeliveryError, or that of a context which ended.
func (p *Provider) post(ctx context.Context, patience time.Duration, target *url.URL, header http.Header, body []byte) error {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(limited, http.MethodPost, target.String(), bytes.NewReader(body))
	if err != nil {
		return &DeliveryError{Host: target.Hostname(), Problem: "it cannot be called", final: true}
	}
	request.Header = header
	response, err := p.guard.client(target).Do(request)
	switch {
	case err == nil:
		_ = response.Body.Close() // what a receiver has to say is in the status
		return statusError(target.Hostname(), response)
	case ctx.Err() != nil: // we were told to stop, and it was nobody's fault
		return ctx.Err()
	}
	return connectError(target.Hostname(), err)
}

// Secrets, as the Standard Webhooks specification has them.
const (
	secretPrefix         = "whsec_"
	minSecret, maxSecret = 24, 64 // bytes
)

var errNoSecret = errors.New("external: this account has no secret to sign with")

// NewSecret makes a secret for [Config.Secrets]. Whoever receives webhooks needs it too.
func NewSecret() string {
	var key [32]byte
	rand.Read(key[:]) // never fails: it crashes the program instead
	return secretPrefix + base64.StdEncoding.EncodeToString(key[:])
}

// keys are the secrets of an account, ready for use. No error holds one.
func (p *Provider) keys(ctx context.Context, account string) ([][]byte, error) {
	if p.secrets == nil {
		return nil, nil
	}
	secrets, err := p.secrets(ctx, account)
	if err != nil { // what it says may hold one
		return nil, cmp.Or(ctx.Err(), errors.New("external: the secrets cannot be read"))
	}
	keys := make([][]byte, len(secrets))
	for i, secret := range secrets {
		key, ok := keyOf(secret)
		if !ok {
			return nil, fmt.Errorf("%w: secret %d of the account is not %s", provider.ErrPark, i+1, secretForm)
		}
		keys[i] = key
	}
	return keys, nil
}

// secretForm is what a secret looks like.
var secretForm = fmt.Sprintf("%s and the base64 of %d to %d bytes", secretPrefix, minSecret, maxSecret)

// keyOf is the key that a secret stands for.
func keyOf(secret string) (key []byte, ok bool) {
	text, prefixed := strings.CutPrefix(secret, secretPrefix)
	key, err := base64.StdEncoding.DecodeString(text)
	return key, prefixed && err == nil && len(key) >= minSecret && len(key) <= maxSecret
}

// CheckSecrets says which of some secrets for [Config.Secrets] is none, without a word of it. A run with a callback could not be answered with it.
func CheckSecrets(secrets []string) error {
	for i, secret := range secrets {
		if _, ok := keyOf(secret); !ok {
			return fmt.Errorf("secret %d is not %s", i+1, secretForm)
		}
	}
	return nil
}

// sign sets the headers by which a receiver knows who sent this, when, and whether it has seen it. There is one signature for each key.
func sign(header http.Header, keys [][]byte, id string, now time.Time, body []byte) {
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

// Explain tells the agent what somebody wants to know before they decide. What it says to that, it says by itself: nothing of the response but
// its status is read.
func (p *Provider) Explain(ctx context.Context, run provider.Run, back provider.Clarification) (string, error) {
	if err := checkGraph(run.Graph); err != nil {
		return "", err
	}
	asked, err := decodeRequest(back.Input)
	if err != nil || asked.Callback == nil {
		return "", err
	}
	at := back.At.UTC()
	said := message{Type: typeClarification, Timestamp: at, Data: messageData{
		StateKey: run.StateKey, Interrupt: back.InterruptID, Kind: asked.Kind, Question: back.Number, Text: back.Text, By: back.By, At: at,
	}}
	id := ident.Derive("msg", run.Account, run.ID, back.InterruptID, said.Type, strconv.Itoa(back.Number))
	return "", retryError(back.Attempt, p.send(ctx, run.Account, asked.Callback.URL, id, said))
}

// Withdrawn tells the agent that nobody will answer: somebody has ended the run.
func (p *Provider) NotifyWithdrawn(ctx context.Context, run provider.Run, gone provider.Withdrawal) error {
	if err := checkGraph(run.Graph); err != nil {
		return err
	}
	asked, err := decodeRequest(gone.Input)
	if err != nil || asked.Callback == nil {
		return err
	}
	at := gone.At.UTC()
	said := message{Type: typeWithdrawn, Timestamp: at, Data: messageData{
		StateKey: run.StateKey, Interrupt: gone.InterruptID, Kind: asked.Kind, Reason: gone.Reason, At: at,
	}}
	id := ident.Derive("msg", run.Account, run.ID, gone.InterruptID, said.Type)
	return retryError(gone.Attempt, p.send(ctx, run.Account, asked.Callback.URL, id, said))
}
