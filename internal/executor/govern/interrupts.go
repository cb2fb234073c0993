package govern

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/auditrec"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/history"
	"github.com/fermata-go/fermata/internal/executor/ids"
	"github.com/fermata-go/fermata/internal/executor/txn"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/policy/replay"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/provider"
)

// AnswerByRule is the approval of an interrupt by the rules.
type AnswerByRule struct {
	// By is "policy" followed by the rules, or "grant" followed by the grant.
	By string
	// Rule is the rule that decided, or the first of several. Grant is the grant that replaced an
	// approval.
	Rule, Grant string
	At          time.Time
}

// AllowInterrupt returns the approval if the rules or a grant allow an interrupt, and nil
// otherwise: then people are asked, or it is denied, when the interrupt is published. The approval
// is charged and recorded once, however often it is called for the same interrupt. flush saves the
// state that raised it before.
func (gv *Governor) AllowInterrupt(ctx context.Context, run store.Run, meta docs.RunMeta, flush func(context.Context) error, q provider.Interrupt) (*AnswerByRule, error) {
	if gv.config.Policy == nil {
		return nil, nil
	}
	var answer *AnswerByRule
	err := gv.chargeQueue.WhileStale(ctx, run.Account, func() (err error) {
		answer, err = gv.allowInterrupt(ctx, run, meta, flush, q)
		return err
	})
	return answer, retryLater(err, run.Attempts)
}

func (gv *Governor) allowInterrupt(ctx context.Context, run store.Run, meta docs.RunMeta, flush func(context.Context) error, q provider.Interrupt) (*AnswerByRule, error) {
	now, err := gv.store.Now(ctx)
	if err != nil {
		return nil, err
	}
	s := gv.NewSession(txn.New(run, meta, now), history.New(gv.docs, run))
	key, err := s.History.ChargeKeyFor(ctx, q.Address, q.ID)
	if err != nil {
		return nil, err
	}
	// The provider may have used the answer of an earlier attempt, so that stays.
	if answer, err := s.recordedAnswer(ctx, key); answer != nil || err != nil {
		return answer, err
	}
	j, err := s.evaluateInterrupt(ctx, key, q)
	if err != nil {
		return nil, err
	}
	j.answers = true
	digest := ""
	if q.Kind == fermata.Approval.Name() {
		if digest, err = approvalDigest(q); err == nil {
			j.Decision, err = s.applyGrant(ctx, key, j.RatedInput, j.Decision, digest)
		}
	}
	if err != nil || j.Verdict != policy.Allow {
		return nil, err
	}
	if err := flush(ctx); err != nil {
		return nil, err
	}
	if err := s.recordAllowedInterrupt(ctx, key, j, q, digest); err != nil {
		return nil, err
	}
	return newAnswerByRule(j.Rules, j.Grant, now), nil
}

func newAnswerByRule(rules []string, grant string, at time.Time) *AnswerByRule {
	answer := &AnswerByRule{By: "policy " + strings.Join(rules, ", "), Rule: rules[0], Grant: grant, At: at}
	if grant != "" {
		answer.By = "grant " + grant
	}
	return answer
}

// recordedAnswer returns the approval that an earlier attempt recorded, or nil.
func (s *Session) recordedAnswer(ctx context.Context, key string) (*AnswerByRule, error) {
	document, err := s.governor.findRuling(ctx, s.Tx.Run, key)
	if document == nil || err != nil {
		return nil, err
	}
	var facts rulingIndex
	if err := json.Unmarshal(document.Index, &facts); err != nil || len(facts.Rules) == 0 {
		return nil, fmt.Errorf("executor: the recorded ruling %s is invalid: %w", document.ID, err)
	}
	day, _, _ := strings.Cut(document.ID, "/") // see rulingID
	at, err := time.Parse(rulingTimeFormat, day)
	return newAnswerByRule(facts.Rules, facts.Grant, at), err
}

// recordAllowedInterrupt charges an interrupt that the rules allow, and adds the ruling and its
// audit line.
func (s *Session) recordAllowedInterrupt(ctx context.Context, key string, j *Evaluation, q provider.Interrupt, digest string) error {
	if err := s.addCharges(ctx, key, j.Charges); err != nil {
		return err
	}
	if err := s.AddCounters(); err != nil {
		return err
	}
	if err := s.addRuling(ctx, j, replay.StageAllowed, key, ""); err != nil {
		return err
	}
	line := audit.PolicyAllowed{
		Kind: q.Kind, Question: s.Tx.Digest(ids.EnvelopeDigest(q.Envelope)),
		Ruling: audit.Ruling{Digest: j.Policy, Version: truncateForAudit(j.Version), Rules: j.Rules, Grant: j.Grant},
	}
	if q.Kind == fermata.Approval.Name() {
		line.Action = audit.Action{Name: truncateForAudit(j.input.Tool), Args: s.Tx.Digest(digest)}
	}
	place := s.Tx.AuditPlace()
	place.Interrupt = q.ID
	if err := s.Tx.AddAudit(auditrec.SystemActor, place, line); err != nil { //mutate:allowed-interrupt-audited
		return err
	}
	return s.governor.store.CommitWrites(ctx, s.Tx.Run.Account, s.Tx.Writes)
}

// approvalDigest returns the digest of the action that an approval is about.
func approvalDigest(q provider.Interrupt) (string, error) {
	var request fermata.ApprovalRequest
	err := json.Unmarshal(q.Data, &request)
	return request.Digest, err
}

// evaluateInterrupt evaluates the policy for an interrupt of any kind.
func (s *Session) evaluateInterrupt(ctx context.Context, key string, q provider.Interrupt) (*Evaluation, error) {
	in, err := policy.InputOfRequest(s.Tx.Run.ID, q.Address, q.Envelope)
	if err != nil {
		return nil, err
	}
	return s.evaluateInput(ctx, key, in)
}

// InterruptRequirement sets what the policy requires for an interrupt that is not about the
// approval of an action, and returns the routes that it names. A request about an effect in doubt
// has inherited the requirement of its action, or not: what rules require is added to that.
func (s *Session) InterruptRequirement(ctx context.Context, ask *desk.RequestSpec, q provider.Interrupt, inherited bool) (routes []string, err error) {
	if s.governor.config.Policy == nil {
		return nil, nil
	}
	key, err := s.History.ChargeKeyFor(ctx, q.Address, ask.ID)
	if err != nil {
		return nil, err
	}
	j, err := s.evaluateInterrupt(ctx, key, q)
	if err != nil {
		return nil, err
	}
	if j.Verdict == policy.Deny && q.Kind != fermata.EffectInDoubt.Name() { // a person must resolve that
		return nil, s.denyRequest(ctx, j, ask)
	}
	if err := s.addRuling(ctx, j, replay.StageAsked, rulingKey(s.Tx.Run, replay.StageAsked, ask.ID, nil), ask.ID); err != nil {
		return nil, err
	}
	byDefault := len(j.Rules) == 1 && j.Rules[0] == policy.DefaultRule
	if inherited && (j.Requirement == nil || byDefault) {
		return nil, nil
	}
	for _, rule := range j.Rules {
		if !slices.Contains(ask.Subject.Rules, rule) {
			ask.Subject.Rules = append(ask.Subject.Rules, rule)
		}
	}
	ask.Subject.Policy, ask.Subject.Reason = j.Policy, j.Reason
	if j.Requirement == nil {
		ask.Requirement.Editable = nil // no rule says what may be edited
		return nil, nil
	}
	need := *j.Requirement.Clone()
	// a question is answered, not approved or rejected; a hold is answered with an edited state
	if len(need.Verbs) > 0 && (q.Kind != docs.HoldKind || slices.Contains(need.Verbs, requirement.VerbEdit)) {
		need.Verbs = append(need.Verbs, requirement.VerbRespond)
	}
	if inherited {
		ask.Requirement = ask.Requirement.Merge(need)
		return nil, nil
	}
	ask.Requirement = need
	return j.Requirement.Routes, nil
}

// deniedName names what was denied: the action, or the kind of the request and its gate.
func deniedName(in policy.Input) string {
	return truncateForAudit(cmp.Or(in.Tool, strings.TrimSuffix(in.Kind+":"+in.Gate, ":")))
}
