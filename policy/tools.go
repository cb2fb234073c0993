package policy

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"cel.dev/cel-go/cel"

	"github.com/fermata-go/fermata/policy/internal/yamldoc"
)

// The fields of req that a file can tell of a tool, under tools.
const (
	tellsEffects = "effects"
	tellsCost    = "cost"
	tellsRisk    = "risk"
)

var tellable = []string{tellsEffects, tellsCost, tellsRisk}

// anyTool is for the tools that have no word of their own, and for what the others' leave out.
const anyTool = "*"

// maxRisk is the highest that a tool is rated.
const maxRisk = 3

// Rating is what a file says of a tool, as it was written: what no action tells of itself.
type Rating struct {
	// Effects is nil if it does not say.
	Effects []string `json:"effects,omitempty"`
	// Cost and Risk are expressions.
	Cost string `json:"cost,omitempty"`
	Risk string `json:"risk,omitempty"`
}

// toolWord is a Rating that can be judged by.
type toolWord struct {
	Rating
	line    int
	effects []string // nil if it does not say
	cost    *figure
	risk    *figure
}

// figure is a number that comes of the arguments of an action.
type figure struct {
	node    yamldoc.Node
	program cel.Program
	most    int64
}

// tells reports whether it says something about a field of req.
func (w *toolWord) tells(field string) bool {
	switch field {
	case tellsEffects:
		return w.effects != nil
	case tellsCost:
		return w.cost != nil
	case tellsRisk:
		return w.risk != nil
	}
	return false
}

// tools reads what the file says of tools.
func (r *reading) tools(node yamldoc.Node) map[string]*toolWord {
	words := make(map[string]*toolWord)
	names, nodes := node.Keys()
	for i, name := range names {
		at := nodes[i]
		checkLabel(at, "the tool", name)
		fields := at.Map(tellable...)
		word := &toolWord{line: at.Line(), cost: figureAt(fields[tellsCost], math.MaxInt64), risk: figureAt(fields[tellsRisk], maxRisk)}
		if !fields[tellsEffects].Missing() {
			word.effects = []string{}
			for _, item := range fields[tellsEffects].List() {
				word.effects = append(word.effects, r.label(item, "the effect"))
			}
		}
		word.Rating = Rating{Effects: word.effects, Cost: fields[tellsCost].Text(), Risk: fields[tellsRisk].Text()}
		if at.IsMapping() && !slices.ContainsFunc(tellable, word.tells) {
			at.Wrong("nothing is said of %q: give its effects, cost or risk", name)
		}
		words[name] = word
	}
	return words
}

// figureAt is the figure at a place; nil if there is none.
func figureAt(node yamldoc.Node, most int64) *figure {
	if node.Missing() {
		return nil
	}
	if plain, err := strconv.ParseInt(node.Text(), 10, 64); err == nil && (plain < 0 || plain > most) {
		node.Wrong("%d is not from 0 to %d", plain, most)
	}
	return &figure{node: node, most: most}
}

// compileTools makes ready what the file says of tools, and of all tools.
func (r *reading) compileTools(env *cel.Env, words map[string]*toolWord) {
	for name, word := range words {
		r.compileFigure(env, fmt.Sprintf("%s of %q", tellsCost, name), word.cost)
		r.compileFigure(env, fmt.Sprintf("%s of %q", tellsRisk, name), word.risk)
	}
	if rest := words[anyTool]; rest != nil {
		for _, word := range words {
			word.cost, word.risk = cmp.Or(word.cost, rest.cost), cmp.Or(word.risk, rest.risk)
			if word.effects == nil {
				word.effects = rest.effects
			}
		}
	}
}

func (r *reading) compileFigure(env *cel.Env, what string, n *figure) {
	if n == nil {
		return
	}
	if f := r.expression(env, n.node, what, cel.IntType, &n.program); f.mayBeUntold() || len(f.counts) > 0 {
		n.node.Wrong("%s: it comes of the arguments, and not of effects, cost, risk or revision, nor of the past", what)
	}
}

// wordFor is what is said of a tool; nil if that is nothing.
func wordFor(words map[string]*toolWord, tool string) *toolWord {
	return cmp.Or(words[tool], words[anyTool])
}

// told checks that an expression of a rule looks at nothing that is never told: not with any action, and not in the file of any tool that the rule is for.
func (r *reading) told(d *document, node yamldoc.Node, what string, looked, rule facts) {
	for _, field := range both(r.untold, looked.uses) {
		known := rule.tools == nil && slices.ContainsFunc(slices.Collect(maps.Values(d.tools)), func(w *toolWord) bool { return w.tells(field) })
		for _, tool := range rule.tools {
			word := wordFor(d.tools, tool)
			known = known || word != nil && word.tells(field)
		}
		switch {
		case known:
		case slices.Contains(tellable, field):
			node.Wrong(`%s: req.%s is not told here, so the rule could never be judged: say it of the tools, under "tools"`, what, field)
		default:
			node.Wrong("%s: req.%s is not told here, so the rule could never be judged", what, field)
		}
	}
}

// Ratings returns what the file says of tools, by their names; "*" is for all others, and for what these leave out.
func (s *Set) Ratings() map[string]Rating {
	said := make(map[string]Rating, len(s.tools))
	for name, word := range s.tools {
		said[name] = word.Rating
	}
	return said
}

// Rated returns the input as the rules see it: with what their file says of the tool. Where the file speaks, whoever asks is not heard: how a tool is
// rated is for those to say who run it.
func (s *Set) Rated(in Input) Input {
	word := wordFor(s.tools, in.Tool)
	if word == nil {
		return in
	}
	args, _, err := in.arguments()
	if err != nil {
		return in // nothing comes of such an input
	}
	vars, err := s.vars(&in, args)
	if err != nil {
		return in
	}
	word.rate(&in, vars)
	return in
}

// rate puts into an input what the file says of its tool, and returns what that cost to find out. A number that cannot be told is untold, whatever the
// input said.
func (w *toolWord) rate(in *Input, vars cel.Activation) (spent uint64) {
	in.Untold = slices.DeleteFunc(slices.Clone(in.Untold), w.tells)
	if w.effects != nil {
		in.Effects = slices.Clone(w.effects)
	}
	if w.cost != nil {
		in.Cost, spent = w.cost.of(in, tellsCost, vars)
	}
	if w.risk != nil {
		risk, more := w.risk.of(in, tellsRisk, vars)
		in.Risk, spent = int(risk), spent+more
	}
	return spent
}

func (n *figure) of(in *Input, field string, vars cel.Activation) (value int64, spent uint64) {
	found, details, err := n.program.Eval(vars)
	if cost := details.ActualCost(); cost != nil {
		spent = *cost
	}
	if err == nil {
		value, err = whole(found)
	}
	if err != nil || value < 0 || value > n.most {
		in.Untold = append(in.Untold, field) //mutate:unknown-cost
		return 0, spent
	}
	return value, spent
}
