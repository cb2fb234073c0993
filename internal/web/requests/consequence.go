package requests

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/refusal"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/web/page"
)

// The results of a consequence.
const (
	resultDecides = "decides"
	resultPending = "pending"
	resultVote    = "vote"
	resultRefused = "refused"
)

// verbOf returns the decision that an action sends; "" if it sends none whose consequence is known
// before its values are.
func (m *Model) verbOf(act string) string {
	switch act {
	case "approve", "remember":
		return string(requirement.VerbApprove)
	case "respond":
		return string(requirement.VerbRespond)
	case "reject":
		return string(requirement.VerbReject)
	}
	return ""
}

// consequence returns what a decision would cause, as the server found it; false if that is not
// known.
func (m *Model) consequence(verb string) (api.Consequence, bool) {
	if m.Activity == nil {
		return api.Consequence{}, false
	}
	i := slices.IndexFunc(m.Activity.Consequences, func(c api.Consequence) bool { return c.Verb == verb })
	if i < 0 {
		return api.Consequence{}, false
	}
	return m.Activity.Consequences[i], true
}

// thenText says what an action causes; "" for a decision of a request that is over.
func (m *Model) thenText(v *page.Visit, act string) string {
	if m.verbOf(act) != "" && !m.Open() {
		return ""
	}
	if act == "escalate" {
		return m.escalationText(v)
	}
	c, known := m.consequence(m.verbOf(act))
	if m.Doubt != nil && act == "respond" && (!known || c.Result == resultDecides) {
		return v.T("then.doubt")
	}
	if !known || c.Result == resultDecides && (act != "approve" || m.Approval == nil) {
		if m.Approval == nil && act == "approve" && known {
			return v.T("then.run.decides")
		}
		if m.Approval == nil && (act == "approve" || act == "reject") {
			return v.T("then.run." + act)
		}
		return v.T("action.then." + act)
	}
	switch c.Result {
	case resultRefused:
		return m.refusalText(v, c.Code)
	case resultVote:
		text := v.T("then.vote."+c.Verb, c.Votes, c.Needed)
		if len(c.Missing) > 0 {
			text += " " + v.T("then.missing", missingText(c.Missing))
		}
		return text
	case resultPending:
		return v.T("then.pending", v.Span(c.EffectiveAt.Sub(v.Now).Seconds()))
	}
	return v.T("then.decides")
}

func missingText(missing []api.MissingVotes) string {
	var parts []string
	for _, m := range missing {
		parts = append(parts, fmt.Sprintf("%d × %s", m.Count, m.Group))
	}
	return strings.Join(parts, ", ")
}

// refusalText says why a decision would be refused.
func (m *Model) refusalText(v *page.Visit, code string) string {
	key := "refused." + code
	text := refusal.Sentence(code, "") // of a newer server
	if _, known := v.Texts[key]; known {
		text = v.T(key)
	}
	if code == codeWeakAuth {
		text += " " + v.T("refused.stepup", m.Activity.MinAuth)
	}
	return text
}

// codeWeakAuth is the code of a decision whose voter has to sign in with a stronger method.
const codeWeakAuth = "weak_auth"

// YouText says what the signed-in person can do with the request: that they voted, that their vote
// counts, or why it does not.
func (m *Model) YouText(v *page.Visit) string {
	switch {
	case !m.Open() || m.Activity == nil || m.Activity.Pending != nil: // a notice says who decided
		return ""
	case m.Activity.Voted:
		return v.T("request.voted")
	case m.needsStepUp():
		return m.refusalText(v, codeWeakAuth)
	case m.Activity.IneligibleReason != "":
		return m.refusalText(v, m.Activity.IneligibleReason)
	}
	return v.T("request.eligible")
}

// needsStepUp reports whether the person could decide with a stronger sign-in.
func (m *Model) needsStepUp() bool {
	for _, verb := range []requirement.Verb{requirement.VerbApprove, requirement.VerbRespond} {
		if c, known := m.consequence(string(verb)); known && c.Code == codeWeakAuth {
			return m.Eligible()
		}
	}
	return false
}

// stepUpURL is the page to sign in again. It leads back to the request.
func (m *Model) stepUpURL() string {
	return "/signin?" + url.Values{"again": {"1"}, "return": {"/requests/" + url.PathEscape(m.ID)}}.Encode()
}

// consequences says what the decisions of the decision bar cause.
func consequences(v *page.Visit, m *Model) (texts []string) {
	if !m.Open() || !m.Eligible() || m.Activity != nil && m.Activity.Voted {
		return nil
	}
	act := "respond"
	if m.Verdicts() {
		act = "approve"
	}
	c, known := m.consequence(m.verbOf(act))
	if m.Doubt != nil && (!known || c.Result == resultDecides) {
		texts = append(texts, v.T("then.doubt"))
	} else {
		texts = append(texts, m.thenText(v, act))
	}
	var next []string
	for _, nodes := range m.Next {
		if len(nodes) == 0 {
			next = append(next, v.T("then.end"))
		} else {
			next = append(next, strings.Join(nodes, " + "))
		}
	}
	if len(next) > 0 && (!known || c.Result == resultDecides) {
		texts = append(texts, v.T("then.next", strings.Join(slices.Compact(next), ", ")))
	}
	return texts
}
