package docs

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/store"
)

// gateFields are the attested fields of a gate in a program that does not link package gate.
var gateFields = map[string]string{"approvedBy": "by", "approvedAt": "at", "auth": "auth", "rule": "rule"}

// AttestedFields returns the fields of an answer that the runtime writes: their roles by name.
func AttestedFields(kind string) map[string]string {
	if k, ok := fermata.LookupKind(kind); ok {
		return k.AttestedFields()
	}
	if kind == GateKind {
		return maps.Clone(gateFields)
	}
	return nil
}

// policyPrefix begins the name of a decision by a rule.
const policyPrefix = "policy "

// Attestation returns who decided an interrupt, when, and how they were authenticated. request is
// the request of the interrupt, or nil.
func Attestation(i store.Interrupt, request *desk.Request) fermata.Attestation {
	a := fermata.Attestation{By: i.DecidedBy, At: i.DecidedAt.UTC()}
	switch {
	case i.Source == store.SourcePolicy:
		a.Rule, _ = strings.CutPrefix(i.DecidedBy, policyPrefix)
	case i.Source == store.SourcePerson && request != nil && request.Decision != nil && len(request.Decision.By) > 0:
		a.By, a.Auth = strings.Join(request.Decision.By, ", "), string(WeakestAuth(*request))
	}
	return a
}

// Attest returns the answer to an interrupt with its attested fields. Without the request of a
// person's decision only the time is written: the answer names the people already.
func Attest(i store.Interrupt, request *desk.Request, answer json.RawMessage) (json.RawMessage, error) {
	fields := AttestedFields(i.Kind)
	if i.Source == store.SourcePerson && request == nil {
		maps.DeleteFunc(fields, func(_, role string) bool { return role != "at" })
	}
	return Attestation(i, request).Write(fields, answer)
}

// ReadAnswer returns what the run gets of a decided interrupt: the answer with its attested fields,
// or the refusal if the interrupt was rejected or returned. The kinds of approvals and gates have
// an answer for a rejection.
func ReadAnswer(i store.Interrupt, request *desk.Request, answer json.RawMessage) (json.RawMessage, *fermata.Refusal, error) {
	if i.Verdict != store.VerdictReject || i.Kind == fermata.Approval.Name() {
		answer, err := Attest(i, request, answer)
		return answer, nil, err
	}
	refusal := new(fermata.Refusal)
	if err := json.Unmarshal(answer, &refusal.Decision); err != nil {
		return nil, nil, err
	}
	by := Attestation(i, request)
	refusal.By, refusal.At, refusal.Auth, refusal.Rule = by.By, by.At, by.Auth, by.Rule
	if i.Kind != GateKind || refusal.Verb != fermata.VerbReject {
		return nil, refusal, nil
	}
	signal, err := json.Marshal(map[string]any{"approved": false, "feedback": cmp.Or(refusal.Reason, strings.Join(refusal.Codes, ", "))})
	if err == nil {
		signal, err = Attest(i, request, signal)
	}
	return signal, nil, err
}

// WeakestAuth returns the weakest authentication of the people who decided a request.
func WeakestAuth(r desk.Request) (weakest requirement.Auth) {
	found := false
	if r.Decision != nil && r.Decision.Outcome == desk.OutcomeReturned { // one person, without a vote
		for _, e := range r.Log {
			if e.Type == desk.EventDecided {
				weakest = e.Auth
			}
		}
		return weakest
	}
	for _, v := range r.Votes {
		if r.Decision != nil && slices.Contains(r.Decision.By, v.By) && (!found || !v.Auth.AtLeast(weakest)) {
			weakest, found = v.Auth, true
		}
	}
	return weakest
}
