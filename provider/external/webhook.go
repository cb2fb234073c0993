package external

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/outbound"
	"github.com/fermata-go/fermata/provider"
)

// The message types.
const (
	typeAnswered      = "request.answered"
	typeReturned      = "request.returned"
	typeRejected      = "request.rejected"
	typeExpired       = "request.expired"
	typeWithdrawn     = "request.withdrawn"
	typeClarification = "request.clarification"
)

// message is the body of a webhook.
type message struct {
	Type string `json:"type"`
	// Timestamp is the time of the event, not of the delivery: the body is the same each time.
	Timestamp time.Time   `json:"timestamp"`
	Data      messageData `json:"data"`
}

type messageData struct {
	StateKey      string          `json:"stateKey"`
	Interrupt     string          `json:"interrupt"`
	Kind          string          `json:"kind"`
	Answer        json.RawMessage `json:"answer,omitempty"`
	Refusal       *refusal        `json:"refusal,omitempty"`
	Clarification int             `json:"clarification,omitempty"` // number, from 1
	Text          string          `json:"text,omitempty"`
	Reason        string          `json:"reason,omitempty"` // why it was withdrawn
	By            string          `json:"by,omitempty"`
	Auth          string          `json:"auth,omitempty"` // how the person was authenticated
	Rule          string          `json:"rule,omitempty"` // the rule that decided
	// ApprovedDigest is the digest of the approved action with its arguments.
	ApprovedDigest string    `json:"approvedDigest,omitempty"`
	At             time.Time `json:"at"`
}

// refusal ends a question without an answer of its kind.
type refusal struct {
	Verb   fermata.Verb `json:"verb"`
	Reason string       `json:"reason,omitempty"`
	By     string       `json:"by,omitempty"`
	At     time.Time    `json:"at"`
}

// deliver sends the answer once. It returns nil only if the receiver accepted it.
func (p *Provider) deliver(ctx context.Context, e provider.Execution, req request, answer provider.Answer) error {
	msg := compose(e.Run, req, answer)
	// One decision has one id, so that receivers can detect duplicates.
	id := ident.Derive("msg", e.Run.Account, e.Run.ID, answer.InterruptID, msg.Type)
	return retryError(e.Attempt, p.send(ctx, e.Run.Account, req.Callback.URL, id, msg))
}

// send makes one call with a signed message.
func (p *Provider) send(ctx context.Context, account, to, id string, msg message) error {
	target, err := p.client.ParseURL(to)
	if err != nil { // it was allowed when the run began
		return fmt.Errorf("%w: the callback is no longer allowed: %w", provider.ErrPark, err)
	}
	keys, err := p.keys(ctx, account)
	switch {
	case err != nil:
		return err
	case len(keys) == 0:
		return fmt.Errorf("%w: %w", provider.ErrPark, errNoSecret)
	}
	body, err := json.Marshal(msg)
	if err != nil {
		return err
	}
	header := make(http.Header)
	header.Set("Content-Type", "application/json")
	header.Set("User-Agent", "Fermata")
	outbound.Sign(header, keys, id, time.Now(), body)
	timeout, done := p.trackDelivery(account)
	defer done()
	err = p.client.Post(ctx, timeout, target, header, body)
	if failed, ok := errors.AsType[*outbound.Error](err); ok {
		return (*DeliveryError)(failed)
	}
	return err
}

// trackDelivery counts the deliveries in progress of an account and returns the timeout for this
// one.
func (p *Provider) trackDelivery(account string) (timeout time.Duration, done func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	timeout = p.timeout
	if p.inFlight[account] >= busyThreshold {
		timeout = min(timeout, busyTimeout)
	}
	p.inFlight[account]++
	return timeout, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.inFlight[account]--; p.inFlight[account] == 0 {
			delete(p.inFlight, account)
		}
	}
}

// compose builds the message. It is the same each time, in every process.
func compose(run provider.Run, req request, answer provider.Answer) message {
	at := answer.At.UTC()
	about := messageData{StateKey: run.StateKey, Interrupt: answer.InterruptID, Kind: req.Kind, At: at}
	if answer.Expired {
		return message{Type: typeExpired, Timestamp: at, Data: about}
	}
	about.By, about.Auth, about.Rule = answer.By, answer.Auth, answer.Rule
	if r := answer.Refusal; r != nil && req.Kind != fermata.Approval.Name() {
		about.Refusal = &refusal{Verb: r.Verb, Reason: r.Reason, By: answer.By, At: at}
		if r.Verb == fermata.VerbReturn {
			return message{Type: typeReturned, Timestamp: at, Data: about}
		}
		return message{Type: typeRejected, Timestamp: at, Data: about}
	}
	about.Answer = answer.Data
	about.ApprovedDigest = req.approvedDigest(answer.Data)
	return message{Type: typeAnswered, Timestamp: at, Data: about}
}

var errNoSecret = errors.New("external: this account has no signing secret")

// NewSecret creates a secret for [Config.Secrets]. The receiver of the webhooks also needs it.
func NewSecret() string { return outbound.NewSecret() }

// keys returns the decoded secrets of an account. Errors do not contain secrets.
func (p *Provider) keys(ctx context.Context, account string) ([][]byte, error) {
	if p.secrets == nil {
		return nil, nil
	}
	secrets, err := p.secrets(ctx, account)
	if err != nil { // the error text may contain a secret
		return nil, cmp.Or(ctx.Err(), errors.New("external: the secrets cannot be read"))
	}
	keys := make([][]byte, len(secrets))
	for i, secret := range secrets {
		key, ok := outbound.ParseSecret(secret)
		if !ok {
			return nil, fmt.Errorf("%w: secret %d of the account is not %s", provider.ErrPark, i+1, outbound.SecretForm)
		}
		keys[i] = key
	}
	return keys, nil
}

// CheckSecrets returns an error for an invalid secret for [Config.Secrets]. The error does not
// contain the secret. Answers of runs with a callback could not be signed with it.
func CheckSecrets(secrets []string) error {
	for i, secret := range secrets {
		if _, ok := outbound.ParseSecret(secret); !ok {
			return fmt.Errorf("secret %d is not %s", i+1, outbound.SecretForm)
		}
	}
	return nil
}

// Explain sends the clarification to the agent. The agent replies through the API: only the status
// of the response is read.
func (p *Provider) Explain(ctx context.Context, run provider.Run, clarification provider.Clarification) (string, error) {
	if err := checkGraph(run.Graph); err != nil {
		return "", err
	}
	req, err := decodeRequest(clarification.Input)
	if err != nil || req.Callback == nil {
		return "", err
	}
	at := clarification.At.UTC()
	msg := message{Type: typeClarification, Timestamp: at, Data: messageData{
		StateKey: run.StateKey, Interrupt: clarification.InterruptID, Kind: req.Kind, Clarification: clarification.Number, Text: clarification.Text, By: clarification.By, At: at,
	}}
	id := ident.Derive("msg", run.Account, run.ID, clarification.InterruptID, msg.Type, strconv.Itoa(clarification.Number))
	return "", retryError(clarification.Attempt, p.send(ctx, run.Account, req.Callback.URL, id, msg))
}

// NotifyWithdrawn notifies the agent that the request was withdrawn because its run was ended.
func (p *Provider) NotifyWithdrawn(ctx context.Context, run provider.Run, withdrawal provider.Withdrawal) error {
	if err := checkGraph(run.Graph); err != nil {
		return err
	}
	req, err := decodeRequest(withdrawal.Input)
	if err != nil || req.Callback == nil {
		return err
	}
	at := withdrawal.At.UTC()
	msg := message{Type: typeWithdrawn, Timestamp: at, Data: messageData{
		StateKey: run.StateKey, Interrupt: withdrawal.InterruptID, Kind: req.Kind, Reason: withdrawal.Reason, At: at,
	}}
	id := ident.Derive("msg", run.Account, run.ID, withdrawal.InterruptID, msg.Type)
	return retryError(withdrawal.Attempt, p.send(ctx, run.Account, req.Callback.URL, id, msg))
}
