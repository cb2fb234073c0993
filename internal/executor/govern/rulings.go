package govern

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/executor/auditrec"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/errs"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/policy/replay"
	"github.com/fermata-go/fermata/internal/store"
)

// rulingIndex is what is not sealed of a ruling.
type rulingIndex struct {
	Stage   replay.Stage   `json:"stage"`
	Verdict policy.Verdict `json:"verdict"`
	Rules   []string       `json:"rules"`
	Policy  string         `json:"policy"`
	Grant   string         `json:"grant,omitempty"`
	Tool    string         `json:"tool"`
}

// rulingID is the id of a ruling's document. Ids sort by time; of rulings that are recorded
// together, an approval is the last.
func rulingID(at time.Time, stage replay.Stage, key string) string {
	order := "1"
	if stage == replay.StageApproved {
		order = "2"
	}
	return rulingTime(at) + "/" + order + "/" + key
}

const rulingTimeFormat = "20060102T150405.000000000Z"

func rulingTime(at time.Time) string { return at.UTC().Format(rulingTimeFormat) }

// addRuling adds a ruling, and the text of the policy if it is new to the account. With
// Config.DiscardRulings only denials and the approvals of interrupts are added, without the
// arguments, so that each has one audit line.
func (s *Session) addRuling(ctx context.Context, j *Evaluation, stage replay.Stage, key, request string) error {
	if err := s.addPolicyText(ctx, j.set); err != nil {
		return err
	}
	if s.governor.config.DiscardRulings && stage != replay.StageDenied && !j.answers {
		return nil
	}
	ruled := replay.NewRecordedRuling(j.input, j.withoutGrants)
	ruled.Key, ruled.Stage, ruled.Request, ruled.Decision.Grant = key, stage, request, j.Grant
	facts, err := json.Marshal(rulingIndex{Stage: stage, Verdict: j.withoutGrants.Verdict, Rules: j.withoutGrants.Rules, Policy: j.withoutGrants.Policy, Grant: j.Grant, Tool: truncateForAudit(j.input.Tool)})
	if err != nil {
		return err
	}
	//mutate:ruling-belongs-to-run
	document := store.DocumentChange{Kind: docs.RulingKind, ID: rulingID(s.Tx.Now, stage, key), Run: s.Tx.Run.ID, Index: facts}
	if !s.governor.config.DiscardRulings {
		if document.Body, err = json.Marshal(ruled); err != nil {
			return err
		}
	}
	s.Tx.Documents = append(s.Tx.Documents, document)
	return nil
}

// hasRuling reports whether a ruling was written before, perhaps by an earlier attempt that failed.
func (gv *Governor) hasRuling(ctx context.Context, run store.Run, key string) (bool, error) {
	document, err := gv.findRuling(ctx, run, key)
	return document != nil, err
}

// findRuling returns the document of a ruling, or nil.
func (gv *Governor) findRuling(ctx context.Context, run store.Run, key string) (*store.Document, error) {
	for document, err := range gv.docs.Documents(ctx, run.Account, docs.RulingKind, store.DocumentFilter{Run: run.ID, Limit: docs.RulingsPerPage}) {
		if err != nil {
			return nil, err
		}
		if strings.HasSuffix(document.ID, "/"+key) {
			return &document, nil
		}
	}
	return nil, nil
}

// addDenial adds a denial and its audit line. digest is the digest of the action.
func (s *Session) addDenial(ctx context.Context, j *Evaluation, key, digest, request string) error {
	if err := s.addRuling(ctx, j, replay.StageDenied, key, request); err != nil {
		return err
	}
	return s.Tx.AddAudit(auditrec.SystemActor, s.Tx.AuditPlace(), audit.PolicyDenied{
		Action: audit.Action{Name: deniedName(j.input), Args: s.Tx.Digest(digest)},
		Ruling: audit.Ruling{Digest: j.Policy, Version: truncateForAudit(j.Version), Rules: j.Rules},
	})
}

// recordDenial writes the denial of an action, unless it was written before.
func (s *Session) recordDenial(ctx context.Context, key string, j *Evaluation, digest string) error {
	if known, err := s.governor.hasRuling(ctx, s.Tx.Run, key); known || err != nil {
		return err
	}
	if err := s.addDenial(ctx, j, key, digest, ""); err != nil {
		return err
	}
	return s.governor.store.CommitWrites(ctx, s.Tx.Run.Account, s.Tx.Writes)
}

// rulingKey names a ruling on a question.
func rulingKey(run store.Run, stage replay.Stage, question string, args json.RawMessage) string {
	return ident.Derive("r", run.ID, string(stage), question, string(args))
}

// policyCache remembers, by account and digest, which policies are known to be in the store.
type policyCache struct{ known sync.Map }

type policyKey struct{ account, digest string }

// addPolicyText adds the text of the policy in force, with an audit line, if it is new to the
// account. Of several concurrent writers one succeeds; the others get ErrStale, and find it when
// they try again.
func (s *Session) addPolicyText(ctx context.Context, set *policy.Set) error {
	name := policyKey{s.Tx.Run.Account, set.Digest()}
	if _, known := s.governor.policies.known.Load(name); known {
		return nil
	}
	for _, p := range s.Tx.Documents {
		if p.Kind == docs.PolicyKind && p.ID == name.digest {
			return nil
		}
	}
	_, err := s.governor.store.Document(ctx, name.account, docs.PolicyKind, name.digest)
	if err == nil {
		s.governor.policies.known.Store(name, true)
	}
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	document := store.DocumentChange{Kind: docs.PolicyKind, ID: name.digest}
	if document.Body, err = json.Marshal(policyBody{Version: set.Version(), Text: set.Source()}); err != nil {
		return err
	}
	s.Tx.Documents = append(s.Tx.Documents, document)
	//mutate:policy-load-audited
	return s.Tx.AddAudit(auditrec.SystemActor, audit.Location{}, audit.PolicyLoaded{Ruling: audit.Ruling{Digest: name.digest, Version: truncateForAudit(set.Version())}, Rules: len(set.Rules())})
}

// policyBody is the body of a policy's document.
type policyBody struct {
	Version string `json:"version,omitempty"`
	Text    string `json:"text"`
}

// PolicyText is a policy as it was written.
type PolicyText struct {
	Digest, Version, Text string
	// Since is when an action of the account was judged by it for the first time; zero if none was.
	Since time.Time
}

// PolicyByDigest returns the text of a policy by its digest: the one in force, or one that was
// applied to an action of the account. It returns store.ErrNotFound if there is none.
func (gv *Governor) PolicyByDigest(ctx context.Context, account, digest string) (PolicyText, error) {
	if digest == "" || len(digest) > errs.MaxName {
		return PolicyText{}, store.ErrNotFound
	}
	document, err := gv.store.Document(ctx, account, docs.PolicyKind, digest)
	if errors.Is(err, store.ErrNotFound) {
		if set := gv.CurrentPolicy(); set != nil && set.Digest() == digest {
			return PolicyText{Digest: digest, Version: set.Version(), Text: set.Source()}, nil
		}
	}
	if err != nil {
		return PolicyText{}, err
	}
	var kept policyBody
	err = gv.docs.DecodeBody(document, &kept)
	return PolicyText{Digest: digest, Version: kept.Version, Text: kept.Text, Since: document.Created}, err
}

// truncateForAudit cuts a text to what an audit line may have, and makes it valid UTF-8: a denial
// must not fail because of a name.
func truncateForAudit(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) > audit.MaxText {
		text = strings.ToValidUTF8(text[:audit.MaxText-len("…")], "") + "…"
	}
	return text
}
