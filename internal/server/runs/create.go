package runs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/enduser"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/server/endpoint"
	"github.com/fermata-go/fermata/internal/server/outcomes"
	"github.com/fermata-go/fermata/internal/server/problems"
	"github.com/fermata-go/fermata/internal/server/visibility"
	"github.com/fermata-go/fermata/internal/store"
)

type createRequestInput struct {
	Prefer         string `header:"Prefer" doc:"As for chat."`
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"256" doc:"Idempotency key for a request without a stateKey. The same request with the same key is created once."`
	Body           api.CreateRequest
}

func (h *Handlers) registerCreate(to huma.API) {
	create := endpoint.New("create-request", http.MethodPost, api.Prefix+"/requests", "Create a request, from an agent in any language", authn.RoleAgent)
	create.MaxBodyBytes = h.Limits.Body
	create.Responses = outcomes.Responses(to)
	huma.Register(to, create, h.createRequest)
}

func (h *Handlers) createRequest(ctx context.Context, in *createRequestInput) (*outcomes.Output, error) {
	me := endpoint.Principal(ctx)
	wait, err := endpoint.Prefer(in.Prefer)
	if err != nil {
		return nil, err
	}
	request := executor.RunRequest{Account: me.Account, StateKey: in.Body.StateKey, Graph: visibility.ExternalGraph, Actor: me.ID, Kind: me.ActorKind(), Via: me.Auth.Via(), Auth: me.Auth.Strength, Wait: wait}
	if err := checkStateKey(request.StateKey); err != nil {
		return nil, err
	}
	once := request.StateKey == "" && in.IdempotencyKey == "" && !in.Body.AllowDuplicate
	applyIdempotencyKey(&request, in.IdempotencyKey)
	in.Body.StateKey, in.Body.AllowDuplicate = "", false
	if request.Input, err = json.Marshal(in.Body); err != nil {
		return nil, err
	}
	if once {
		return h.createOnce(ctx, request, in.Body)
	}
	return h.create(ctx, request)
}

func (h *Handlers) create(ctx context.Context, request executor.RunRequest) (*outcomes.Output, error) {
	if err := h.admitStart(ctx, request); err != nil {
		return nil, err
	}
	return h.startOrResume(ctx, request)
}

// createOnce creates a request without a state key, unless the agent has an open one with the same
// kind and data: then it returns that one. Identical requests have the same state key, so the store
// creates only one of several that arrive at the same time.
func (h *Handlers) createOnce(ctx context.Context, request executor.RunRequest, body api.CreateRequest) (*outcomes.Output, error) {
	key, err := duplicateKey(request.Actor, body)
	if err != nil {
		return nil, problems.New("bad_request", "the data or the facts are not valid JSON")
	}
	for {
		request.StateKey = key
		before, err := h.Executor.GetRun(ctx, request.Account, key)
		switch {
		case errors.Is(err, executor.ErrRunNotFound):
			return h.create(ctx, request)
		case err != nil:
			return nil, problems.Of(err)
		case before.Status.Active() && !isAnswered(before):
			return h.deduplicate(ctx, request, before.ID)
		}
		// Requests that arrive while the answer is being delivered share the next key.
		key = ident.Derive(duplicatePrefix, key, before.ID)
		if before.Status.Active() {
			continue
		}
		next, err := h.Executor.GetRun(ctx, request.Account, key)
		if errors.Is(err, executor.ErrRunNotFound) || err == nil && !next.Status.Active() {
			request.StartID = "after " + before.ID // otherwise it would be a repetition
			return h.create(ctx, request)
		}
		if err != nil {
			return nil, problems.Of(err)
		}
	}
}

// isAnswered reports whether all requests of a run are decided. The status of the run does not
// tell: it is read before the requests, so they can be newer.
func isAnswered(run executor.RunView) bool {
	return len(run.Interrupts) > 0 && !slices.ContainsFunc(run.Interrupts, func(i executor.RequestView) bool { return i.State == store.InterruptPending })
}

// deduplicate returns the outcome of an identical open request.
func (h *Handlers) deduplicate(ctx context.Context, request executor.RunRequest, run string) (*outcomes.Output, error) {
	if err := h.Executor.CheckInput(ctx, request); err != nil {
		return nil, problems.Of(err)
	}
	outcome, err := h.Executor.Await(ctx, request, run)
	if waiting, ok := outcome.(fermata.NeedsInput); ok {
		waiting.Deduplicated = true
		outcome = waiting
	}
	if err == nil && request.Wait < 0 {
		return outcomes.Accepted(run, request.StateKey), nil
	}
	return outcomes.Respond(ctx, h.Visibility, outcome, err)
}

// duplicatePrefix begins the state keys of [duplicateKey]. Clients cannot choose such a key:
// otherwise an agent could replace the request of another agent with its own.
const duplicatePrefix = "same"

// checkStateKey rejects keys that the server chooses itself. With the key of the next run of a
// conversation, an agent would keep the user from going on.
func checkStateKey(key string) error {
	for _, reserved := range []string{duplicatePrefix + "_", enduser.RunPrefix} {
		if strings.HasPrefix(key, reserved) {
			return problems.New("bad_request", "a state key that begins with %q is reserved", reserved)
		}
	}
	return nil
}

// duplicateKey returns the state key of all requests of an agent with the same kind, data,
// requester, environment and facts.
func duplicateKey(agent string, body api.CreateRequest) (string, error) {
	data, err := sortedJSON(body.Data)
	if err != nil {
		return "", err
	}
	parts := []string{agent, body.Kind, data}
	if body.Requester != "" || body.Environment != "" || len(body.Facts) > 0 {
		facts := "null"
		if len(body.Facts) > 0 {
			if facts, err = sortedJSON(body.Facts); err != nil {
				return "", err
			}
		}
		parts = append(parts, body.Requester, body.Environment, facts)
	}
	return ident.Derive(duplicatePrefix, parts...), nil
}

// sortedJSON returns a value with sorted members, without changing numbers.
func sortedJSON(raw json.RawMessage) (string, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return "", err
	}
	sorted, err := json.Marshal(value)
	return string(sorted), err
}
