package requests

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
)

// View renders the requests of one kind. The built-in views are made in the same way.
//
//	web.View{Kind: "refund", Template: `
//		{{define "sentence"}}<b>{{markLine .From}}</b> wants a refund{{end}}
//		{{define "body"}}<p class="block">{{mark (text .Data "note")}}</p>{{end}}`}
//
// The templates get a [ViewData]. They may use the functions that the package documentation lists,
// and must print everything from the request with mark, markLine or value.
type View struct {
	// Kind is the kind of the requests.
	Kind string
	// Template defines "body", the question as people see it, "sentence", its heading, and "line",
	// the short form of the heading in lists. Without a definition the generic one is used.
	Template string
	// Element, if set, is the name of a custom element around the body, such as "acme-refund". Its
	// first child is a script element with the request as JSON. Script is the module that defines
	// it. The body stays as it is in browsers without scripts.
	Element string
	Script  []byte
}

// ViewData is the data of a view's templates.
type ViewData struct {
	api.Request
	// From is the requester, or the graph if there is no requester.
	From string
	// Approval is the question of an approval; nil for other kinds.
	Approval *fermata.ApprovalRequest
	// HeldAt and HeldWhen are the node of a hold, and "before" or "after".
	HeldAt, HeldWhen string
	// Doubt is the question about an effect in doubt.
	Doubt *fermata.InDoubtRequest
	// Args are the arguments of an action, in order.
	Args []Arg
	// Says are texts of the agent that are not arguments.
	Says []string
}

// kindView is a parsed view.
type kindView struct {
	View
	templates map[string]*template.Template // by language
	script    string                        // its path
}

// genericView is the name of the view for kinds without one.
const genericView = "generic"

// parseViews parses the built-in views and those of the program.
func (s *Pages) parseViews(builtIn fs.FS, own []View) (map[string]*kindView, error) {
	names, err := fs.Glob(builtIn, "views/*.html")
	if err != nil {
		return nil, err
	}
	all := make([]View, 0, len(names)+len(own))
	for _, name := range names {
		text, err := fs.ReadFile(builtIn, name)
		if err != nil {
			return nil, err
		}
		all = append(all, View{Kind: strings.TrimSuffix(path.Base(name), ".html"), Template: string(text)})
	}
	bases := make(map[string]*template.Template)
	for language, texts := range s.shell.Config.Languages {
		if bases[language], err = template.New("").Funcs(s.shell.Funcs(texts)).ParseFS(builtIn, "views/"+genericView+".html"); err != nil {
			return nil, err
		}
	}
	views := make(map[string]*kindView)
	for _, v := range append(all, own...) {
		parsed, err := s.parseView(bases, v)
		if err != nil {
			return nil, fmt.Errorf("web: view of kind %q: %w", v.Kind, err)
		}
		views[v.Kind] = parsed
	}
	return views, nil
}

func (s *Pages) parseView(bases map[string]*template.Template, v View) (*kindView, error) {
	switch {
	case v.Kind == "":
		return nil, errors.New("the view has no Kind")
	case v.Element != "" && (!strings.Contains(v.Element, "-") || strings.ContainsFunc(v.Element, notElementName)):
		return nil, fmt.Errorf("%q is not the name of a custom element", v.Element)
	case (v.Element == "") != (len(v.Script) == 0):
		return nil, errors.New("the view needs both Element and Script, or neither")
	}
	parsed := &kindView{View: v, templates: make(map[string]*template.Template)}
	for language, base := range bases {
		t, err := base.Clone()
		if err == nil {
			t, err = t.Parse(v.Template)
		}
		if err != nil {
			return nil, err
		}
		parsed.templates[language] = t
	}
	if v.Element != "" {
		name := "view-" + v.Element + ".js"
		if err := s.shell.AddStatic(name, v.Script); err != nil {
			return nil, err
		}
		parsed.script = name
	}
	return parsed, nil
}

func notElementName(r rune) bool { return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-') }

// render returns the result of one of the view's templates.
func (k *kindView) render(language, name string, data ViewData) (template.HTML, error) {
	var b strings.Builder
	if err := k.templates[language].ExecuteTemplate(&b, name, data); err != nil {
		return "", err
	}
	return template.HTML(strings.TrimSpace(b.String())), nil
}

// wrap returns the body inside the custom element of the view, with the request as JSON.
func (k *kindView) wrap(r api.Request, body template.HTML) (template.HTML, error) {
	if k.Element == "" {
		return body, nil
	}
	text, err := json.Marshal(r) // it escapes < and >, so the script cannot be closed by a value
	if err != nil {
		return "", err
	}
	return template.HTML("<" + k.Element + `><script type="application/json">` + string(text) + "</script>" + string(body) + "</" + k.Element + ">"), nil
}

// viewFor returns the view of a request.
func (s *Pages) viewFor(m *Model) *kindView {
	name := m.Kind
	if m.HeldAt != "" {
		name = "hold"
	}
	if v, ok := s.views[name]; ok {
		return v
	}
	if v, ok := s.views[m.shape()]; ok {
		return v
	}
	return cmp.Or(s.views[m.shape()], s.views[genericView])
}
