package policy

import (
	"slices"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/sets"
	"github.com/fermata-go/fermata/internal/yamldoc"
)

var (
	// allowableKinds are the kinds of requests that rules can allow. Only a person can answer the
	// others.
	allowableKinds = []string{fermata.Approval.Name(), kindGate, kindHold}
	// noDefaultKinds are the kinds for which on_timeout: default is not possible.
	noDefaultKinds = append(slices.Clone(allowableKinds), fermata.EffectInDoubt.Name())
)

// applies reports whether rules with this verdict apply to the kind of request. An effect that may
// have happened cannot be denied.
func (v Verdict) applies(kind string) bool {
	switch v {
	case Allow:
		return slices.Contains(allowableKinds, kind)
	case Deny:
		return kind != fermata.EffectInDoubt.Name()
	}
	return true
}

// applies reports whether the rule applies to the kind of request. An author has put a gate or a
// hold there on purpose: a rule passes it only if its condition is about kinds or gates.
func (r *rule) applies(kind string) bool {
	if r.Then == Allow && (kind == kindGate || kind == kindHold) {
		return slices.Contains(r.info.requestFields, "kind") || slices.Contains(r.info.requestFields, "gate") //mutate:gate-named-by-rule
	}
	return r.Then.applies(kind)
}

// checkKinds reports a verdict or a timeout action that is not possible for a kind that the rule
// names.
func (r *loader) checkKinds(d *document, node yamldoc.Node, one *rule) {
	for _, kind := range one.info.kinds {
		switch {
		case one.Then == Allow && !Allow.applies(kind):
			node.Reportf("then: allow is not possible for req.kind %q: only a person can answer it. Rules can allow %s; use ask", kind, strings.Join(allowableKinds, ", "))
		case one.Then == Deny && !Deny.applies(kind):
			node.Reportf("then: deny is not possible for req.kind %q: the effect may have happened, and a person must find out. Use ask", kind)
		}
	}
	inherited := d.defaultAsk != nil && d.defaultAsk.OnTimeout == requirement.DefaultOnTimeout
	if one.Ask == nil || one.Ask.OnTimeout != requirement.DefaultOnTimeout || inherited {
		return
	}
	if no := sets.Intersect(one.info.kinds, noDefaultKinds); len(no) > 0 {
		node.Reportf("on_timeout: default is not possible for req.kind %q: waiting never approves anything. Use expire, escalate or reject", no[0])
	}
}

// onTimeoutFor returns what happens at the deadline of a request of this kind.
func onTimeoutFor(kind string, want requirement.OnTimeout) requirement.OnTimeout {
	if want == requirement.DefaultOnTimeout && slices.Contains(noDefaultKinds, kind) {
		return requirement.ExpireOnTimeout
	}
	return want
}

// fallback returns the default verdict for a kind of request. The default allows actions only.
func (s *Set) fallback(kind string) Verdict {
	if s.defaultVerdict == Allow && kind != fermata.Approval.Name() || !s.defaultVerdict.applies(kind) {
		return Ask
	}
	return s.defaultVerdict
}
