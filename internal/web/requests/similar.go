package requests

import (
	"context"
	"encoding/json"
	"html/template"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/web/page"
)

const (
	maxSimilar = 5
	// similarCandidates is more than maxSimilar, because the search also finds tools whose names
	// contain the name of the tool.
	similarCandidates = 20
	// similarTimeout is how long the page waits for similar decisions.
	similarTimeout = 500 * time.Millisecond
)

// similarDecision is an earlier decision on a request of the same kind and tool.
type similarDecision struct {
	ID       string
	Sentence template.HTML
	Decision api.Decision
	// Difference is how the amount differs from that of the request; "" if it does not.
	Difference string
}

// similar returns the last decisions on requests like m that the signed-in person may see. It
// returns nil if the search fails: the page is complete without them.
func (s *Pages) similar(v *page.Visit, m *Model) (list []similarDecision) {
	query := client.Query{Search: "is:decided", Kind: m.Kind, Order: "newest", Limit: similarCandidates}
	switch tool := m.tool(); {
	case tool == "":
		query.GraphID = m.GraphID // kinds without a tool are often shared by graphs
	case strings.Contains(tool, `"`): // a search cannot quote it
		return nil
	default:
		query.Search += ` tool:"` + tool + `"`
	}
	ctx, cancel := context.WithTimeout(v.Context(), similarTimeout)
	defer cancel()
	found, err := v.API.Requests(ctx, query)
	if err != nil {
		return nil
	}
	for _, r := range found.Items {
		other := &Model{ViewData: ViewData{Request: r}}
		other.readOrigin()
		other.readQuestion()
		if r.ID == m.ID || r.Decision == nil || r.Unreadable || other.tool() != m.tool() {
			continue
		}
		other.useApprovedArgs()
		list = append(list, similarDecision{ID: r.ID, Sentence: headline(v.Texts, other.ViewData), Decision: *r.Decision, Difference: amountDifference(v, other, m)})
	}
	slices.SortStableFunc(list, func(a, b similarDecision) int { return b.Decision.At.Compare(a.Decision.At) })
	return list[:min(len(list), maxSimilar)]
}

// useApprovedArgs replaces the arguments of an approval by those that were approved.
func (m *Model) useApprovedArgs() {
	var answer fermata.Decision
	if m.Approval == nil || m.Decision.Verdict != string(fermata.VerbApprove) || json.Unmarshal(m.Decision.Answer, &answer) != nil || answer.Args == nil {
		return
	}
	approval := *m.Approval
	approval.Args = answer.Args
	m.Approval = &approval
}

// amountDifference words by how much the amount of a request is higher or lower than that of
// another one; "" if it is not or if they cannot be compared.
func amountDifference(v *page.Visit, of, than *Model) string {
	a, ok := of.amount()
	b, same := than.amount()
	if !ok || !same || a.currency != b.currency {
		return ""
	}
	key, difference := "similar.more", new(big.Rat).Sub(a.value, b.value)
	switch difference.Sign() {
	case 0:
		return ""
	case -1:
		key = "similar.less"
	}
	text := difference.Abs(difference).FloatString(max(a.decimals, b.decimals))
	return v.T(key, strings.TrimSpace(text+" "+a.currency))
}

// amount is an exact amount of money. The currency may be missing.
type amount struct {
	value    *big.Rat
	decimals int
	currency string
}

var (
	decimalAmount = regexp.MustCompile(`^-?[0-9]{1,30}(\.[0-9]{1,9})?$`)
	currencyCode  = regexp.MustCompile(`^([A-Z]{3})?$`)
)

// amount returns the arguments amount and currency of an approval, unless they are masked.
func (m *Model) amount() (amount, bool) {
	if m.Approval == nil || len(m.Masked) > 0 {
		return amount{}, false
	}
	var args struct {
		Amount   json.RawMessage `json:"amount"`
		Currency string          `json:"currency"`
	}
	if json.Unmarshal(m.currentArgs(), &args) != nil {
		return amount{}, false
	}
	text := strings.Trim(string(args.Amount), `"`)
	if !decimalAmount.MatchString(text) || !currencyCode.MatchString(args.Currency) {
		return amount{}, false
	}
	_, fraction, _ := strings.Cut(text, ".")
	value, ok := new(big.Rat).SetString(text)
	return amount{value, len(fraction), args.Currency}, ok
}
