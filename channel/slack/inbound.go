package slack

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/slack-go/slack"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/schemaform"
)

// maxBody is the size limit of a request of Slack.
const maxBody = 256 << 10

// ackTimeout is the time for everything before the acknowledgement. Slack waits three seconds.
const ackTimeout = 2500 * time.Millisecond

// Handler serves the endpoints for interactivity and slash commands. Each request is verified and
// stored before it is acknowledged.
func (c *Channel) Handler(desk channel.Desk) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /channels/slack/interactivity", c.verified(func(ctx context.Context, form url.Values) (any, error) {
		return c.acceptInteraction(ctx, desk, []byte(form.Get("payload")))
	}))
	mux.HandleFunc("POST /channels/slack/commands", c.verified(func(ctx context.Context, form url.Values) (any, error) {
		return c.acceptCommand(ctx, desk, form.Get)
	}))
	return mux
}

// verified checks the signature and the age of a request over its raw body.
func (c *Channel) verified(next func(ctx context.Context, form url.Values) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if c.config.SigningSecret == "" { // Socket Mode only
			http.Error(w, "not found", http.StatusNotFound)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			http.Error(w, "request too large", http.StatusRequestEntityTooLarge)
			return
		}
		if err != nil {
			http.Error(w, "request not read", http.StatusServiceUnavailable)
			return
		}
		verifier, err := slack.NewSecretsVerifier(r.Header, c.config.SigningSecret)
		if err == nil {
			_, _ = verifier.Write(body)
			err = verifier.Ensure()
		}
		if err != nil { // the error is neither returned nor logged: it may help a forger
			http.Error(w, "invalid signature", http.StatusUnauthorized)
			return
		}
		form, err := url.ParseQuery(string(body))
		if err != nil {
			http.Error(w, "invalid form", http.StatusBadRequest)
			return
		}
		if form.Get("ssl_check") == "1" {
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), ackTimeout)
		defer cancel()
		answer, err := next(ctx, form)
		writeAck(w, answer, err)
	}
}

// writeAck acknowledges a request. Slack shows the person an error for any status but 200.
func writeAck(w http.ResponseWriter, answer any, err error) {
	switch {
	case errors.Is(err, errPayload):
		http.Error(w, "unexpected payload", http.StatusBadRequest)
	case err != nil:
		http.Error(w, "not accepted", http.StatusServiceUnavailable)
	case answer != nil:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}
}

// acceptInteraction opens a modal, or stores a click or a submitted modal. The answer is the
// response to Slack.
func (c *Channel) acceptInteraction(ctx context.Context, desk channel.Desk, data []byte) (any, error) {
	in, err := parseInteraction(data)
	if errors.Is(err, errIgnored) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if in.view != nil {
		return c.acceptSubmission(ctx, desk, in)
	}
	if in.Shown.Form && c.openModal(ctx, desk, in) {
		return nil, nil
	}
	return nil, c.accept(ctx, desk, in) // Receive explains why there is no modal
}

func (c *Channel) acceptCommand(ctx context.Context, desk channel.Desk, get func(string) string) (any, error) {
	in, err := parseCommand(get)
	if err != nil {
		return nil, err
	}
	return nil, c.accept(ctx, desk, in)
}

// accept stores a click. When it returns nil, the click is durable.
func (c *Channel) accept(ctx context.Context, desk channel.Desk, in *click) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return desk.Accept(ctx, Kind, channel.Inbound{Account: c.config.Account, ID: in.id, Body: body})
}

// sender is the Slack account of a person.
func (c *Channel) sender(in *click) channel.Sender {
	return channel.Sender{Account: c.config.Account, Channel: Kind, ID: in.UserTeam + "/" + in.User, Name: in.UserName}
}

// openModal opens the modal of a click while its trigger is valid. It returns false if the person
// cannot use one.
func (c *Channel) openModal(ctx context.Context, desk channel.Desk, in *click) bool {
	if !c.ownWorkspace(ctx, in) {
		return false
	}
	person, _, err := desk.Client(ctx, c.sender(in))
	if err != nil {
		return false
	}
	r, err := person.Request(ctx, in.Shown.Request)
	if err != nil || r.State != "pending" || r.Activity != nil && r.Activity.IneligibleReason != "" {
		return false
	}
	view, err := modalFor(in, r)
	if err != nil {
		return false
	}
	_, err = call(ctx, c, "views.open", "", func() (*slack.ViewResponse, error) { return c.api.OpenViewContext(ctx, in.trigger, view) })
	if err != nil {
		c.config.Log.Warn("slack modal not opened", "err", err)
	}
	return err == nil
}

// acceptSubmission checks the input of a modal and stores it. Errors are returned to the modal.
func (c *Channel) acceptSubmission(ctx context.Context, desk channel.Desk, in *click) (any, error) {
	var p private
	if json.Unmarshal([]byte(in.view.private), &p) != nil || p.Shown.Request == "" || !p.Shown.Form {
		return nil, errPayload
	}
	in.Act, in.Shown, in.Channel, in.Thread, in.ResponseURL = p.Shown.Action, p.Shown, p.Channel, p.Thread, p.ResponseURL
	errs, err := c.readForm(ctx, desk, in)
	if err != nil {
		return nil, err
	}
	if len(errs) > 0 {
		return slack.NewErrorsViewSubmissionResponse(errs), nil
	}
	return nil, c.accept(ctx, desk, in)
}

// readForm reads the answer of a form. It returns errors by block id. Without an answer, Receive
// says why.
func (c *Channel) readForm(ctx context.Context, desk channel.Desk, in *click) (map[string]string, error) {
	person, _, err := desk.Client(ctx, c.sender(in))
	if errors.Is(err, channel.ErrNotLinked) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r, err := person.Request(ctx, in.Shown.Request)
	if problem, ok := errors.AsType[*api.Problem](err); ok && !isTemporary(problem) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	action, err := actionOf(in, r)
	if r.State != "pending" || err != nil {
		return nil, nil
	}
	form, err := newForm(action, r)
	if err != nil {
		return nil, nil
	}
	if err := fill(form, in.view.values); err != nil {
		return nil, errPayload
	}
	values, err := form.root.Value()
	if err != nil {
		return fieldErrors(form, err), nil
	}
	if action.Value != nil && !form.root.Touched() {
		return map[string]string{fieldID(0): "Nothing was changed. Use Approve to approve it as it is."}, nil
	}
	if in.Answer, err = schemaform.Complete(action.Answer, action.At, values); err == nil {
		in.Answer, err = addCodes(in.Answer, selectedCode(in.view.values))
	}
	return nil, err
}
