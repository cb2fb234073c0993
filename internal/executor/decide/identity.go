package decide

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/attest"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/store"
)

// checkIdentity rejects an answer that names another person, group or authentication than the
// caller's in a field that the runtime writes, or a rule. Times are ignored. It returns the answer
// without these fields, except those that its schema requires: these get the server's values.
func (dc *Decider) checkIdentity(i store.Interrupt, request Request, now time.Time, value json.RawMessage) (json.RawMessage, error) {
	fields := docs.AttestedFields(i.Kind)
	members := attest.Members(value)
	if len(fields) == 0 || members == nil {
		return value, nil
	}
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	_ = json.Unmarshal(i.AnswerSchema, &schema) // without one nothing is required
	for _, name := range slices.Sorted(maps.Keys(members)) {
		role := fields[name]
		if _, known := schema.Properties[name]; role == "" && !known && isGroupField(name) {
			role = "group"
		}
		differs, err := dc.differs(attest.Role(role), members[name], request, now)
		if err != nil {
			return nil, err
		}
		if differs {
			return nil, forged(i, request, fmt.Sprintf("%q is not the caller's", name))
		}
	}
	own := make(map[string]string) // of the fields that are required
	for name, role := range fields {
		if slices.Contains(schema.Required, name) {
			own[name] = role
		}
	}
	sent, err := fermata.Attestation{}.Write(fields, value)
	if err != nil || len(own) == 0 {
		return sent, err
	}
	return fermata.Attestation{By: request.Actor, At: now, Auth: string(request.Auth)}.Write(own, sent)
}

// maxGroups limits the calls to the directory for one answer.
const maxGroups = 20

func isGroupField(name string) bool {
	return strings.EqualFold(name, "group") || strings.EqualFold(name, "groups")
}

// differs reports whether a member of an answer claims something that is not true of the caller.
func (dc *Decider) differs(role attest.Role, value json.RawMessage, request Request, now time.Time) (bool, error) {
	if string(value) == "null" || role == "" || role == attest.At {
		return false, nil
	}
	var text string
	isText := json.Unmarshal(value, &text) == nil
	switch role {
	case attest.By:
		return !isText || text != "" && text != request.Actor, nil //mutate:actor-from-session
	case attest.Auth:
		return !isText || text != "" && text != string(request.Auth), nil
	case attest.Rule:
		return !isText || text != "", nil
	}
	groups := []string{text}
	if !isText && json.Unmarshal(value, &groups) != nil || len(groups) > maxGroups {
		return true, nil
	}
	directory := dc.requests.DeskEnv(now).Directory
	for _, group := range groups {
		member, err := directory.Member("group:"+strings.TrimPrefix(group, "group:"), request.Actor)
		if err != nil {
			return false, fmt.Errorf("%w: %w", desk.ErrDirectoryUnavailable, err)
		}
		if !member {
			return true, nil
		}
	}
	return false, nil
}

// forged returns the error for an answer that names another person.
func forged(i store.Interrupt, request Request, detail string) error {
	err := fmt.Errorf("%w: %s", desk.ErrForgedIdentity, detail)
	if i.Kind != fermata.Approval.Name() { // of an approval, the answer has the verb
		err = &desk.RefusedError{Command: desk.CommandRespond, Actor: request.Actor, Err: desk.ErrForgedIdentity, Detail: detail}
	}
	return &RefusedError{Result: Forbidden, Interrupt: i.ID, Err: err}
}
