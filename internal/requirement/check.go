package requirement

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Check returns all errors of the requirement.
func (r Requirement) Check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(r.Groups) == 0 {
		bad("no groups: a requirement needs at least one group")
	}
	if len(r.Groups) > MaxGroups {
		bad("%d groups; the maximum is %d", len(r.Groups), MaxGroups)
	}
	for i, g := range r.Groups {
		for _, problem := range g.problems() {
			bad("group %d%s", i+1, problem)
		}
	}
	for _, d := range r.Exclude {
		if !slices.Contains(Duties, d) {
			bad("unknown duty %q", d)
		}
	}
	for _, v := range r.Verbs {
		if !slices.Contains(ActionVerbs, v) && v != VerbRespond {
			bad("unknown verb %q", v)
		}
	}
	if !slices.Contains(AuthLevels, r.MinAuth) {
		bad("unknown authentication strength %q", r.MinAuth)
	}
	for _, p := range r.Editable {
		if p != "" && p[0] != '/' {
			bad("editable: %q is not a JSON pointer", p)
		}
	}
	for _, p := range r.Confirm {
		if p != "" && p[0] != '/' {
			bad("confirm: %q is not a JSON pointer", p)
		}
	}
	for _, p := range r.Sensitive {
		if p != "" && p[0] != '/' {
			bad("sensitive: %q is not a JSON pointer", p)
		}
	}
	for _, audience := range r.VisibleTo {
		if len(audience) == 0 {
			bad("visible_to has an empty audience")
		}
		for _, who := range audience {
			if !IsPrincipal(who) || who == Anyone || strings.HasPrefix(who, "oncall:") {
				bad("visible_to: unknown principal %q: use group:, user: or role: and a name, or %s", who, Requester)
			}
		}
	}
	if r.OnTimeout != "" && !slices.Contains(OnTimeouts, r.OnTimeout) {
		bad("on_timeout must be expire, escalate, reject or default, not %q", r.OnTimeout)
	}
	if !slices.Contains([]OnEscalate{"", EscalateToNextStep, EscalateReturns}, r.OnEscalate) {
		bad("on_escalate must be next_step or return, not %q", r.OnEscalate)
	}
	if r.OnTimeout == EscalateOnTimeout && r.Deadline == 0 {
		bad("on_timeout: escalate requires a deadline")
	}
	if r.DenyCount < 0 || r.DenyCount > MaxCount {
		bad("deny_count %d is not between 1 and %d", r.DenyCount, MaxCount)
	}
	if r.Undo < 0 || r.Undo > MaxUndo {
		bad("undo %s is not between 0 and %s", r.Undo, MaxUndo)
	}
	if r.Deadline < 0 {
		bad("deadline %s is negative", r.Deadline)
	}
	return errors.Join(errs...)
}

func (g Group) problems() (all []string) {
	bad := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if len(g.From) == 0 {
		bad(" is empty")
	}
	if g.Count < 0 || g.Count > MaxCount {
		bad(": count %d is not between 1 and %d", g.Count, MaxCount)
	}
	if g.Stage < 0 {
		bad(": stage %d is negative", g.Stage)
	}
	for _, who := range slices.Concat(g.From, g.Widen) {
		if !IsPrincipal(who) {
			bad(": unknown principal %q: use group:, user:, role: or oncall: and a name, %s or %s", who, Anyone, Requester)
		}
	}
	return all
}

// PrincipalKinds are the kinds of names, as in group:finance.
var PrincipalKinds = []string{"group", "user", "role", "oncall"}

// IsPrincipal reports whether a name has the form of a member of a group.
func IsPrincipal(who string) bool {
	kind, name, ok := strings.Cut(who, ":")
	if !ok {
		return who == Anyone || who == Requester
	}
	return name != "" && slices.Contains(PrincipalKinds, kind)
}
