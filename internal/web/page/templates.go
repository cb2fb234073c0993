package page

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"path"
	"strings"

	"github.com/fermata-go/fermata/internal/safehtml"
	"github.com/fermata-go/fermata/internal/web/texts"
)

// parseTemplates parses templates/*.html with the texts of a language, each with the shell and all
// parts.
func (s *Shell) parseTemplates(texts texts.Translation) (map[string]*template.Template, error) {
	base, err := template.New("").Funcs(s.Funcs(texts)).ParseFS(s.Config.Templates, "templates/parts/*.html")
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(s.Config.Templates, "templates/*.html")
	if err != nil {
		return nil, err
	}
	pages := make(map[string]*template.Template)
	for _, name := range names {
		t, err := base.Clone()
		if err == nil {
			t, err = t.ParseFS(s.Config.Templates, name)
		}
		if err != nil {
			return nil, err
		}
		pages[strings.TrimSuffix(path.Base(name), ".html")] = t
	}
	return pages, nil
}

// Funcs are the functions of all templates, with the texts of a language.
func (s *Shell) Funcs(texts texts.Translation) template.FuncMap {
	all := template.FuncMap{
		"t":      texts.Text,
		"tn":     texts.Count,
		"static": s.assets.url,
		"icons":  func() template.HTML { return template.HTML(s.assets.icons) }, // our own file
		"icon":   icon,
		"idem":   idempotencyField,
		// untrusted text; see the package documentation
		"mark":       safehtml.Block,
		"markLine":   safehtml.Line,
		"isSystem":   isSystem,
		"value":      func(data json.RawMessage) template.HTML { return jsonValue(texts, data) },
		"initials":   initials,
		"heading":    func(label string) string { return strings.TrimSuffix(label, "…") }, // of a button
		"runURL":     RunURL,
		"graphURL":   graphURL,
		"requestURL": requestURL,
		"auditURL":   auditURL,
		"dict":       dict,
		"short":      short,
		"join":       strings.Join,
		"add":        func(a, b int) int { return a + b },
		"addf":       sum,
		"sub":        func(a, b int) int { return a - b },
		// dictshell returns the data of a page with other page data, for shared parts
		"dictshell": func(d layout, data any) layout {
			d.Page.Data = data
			return d
		},
	}
	maps.Copy(all, s.Config.Funcs(texts))
	return all
}

// icon returns a symbol of static/icons.svg.
func icon(name string) template.HTML {
	id := "i-" + template.HTMLEscapeString(name)
	return template.HTML(`<svg class="icon" aria-hidden="true" data-use="` + id + `"><use href="#` + id + `"/></svg>`)
}

// IdempotencyName is the name of the form field with the idempotency key.
const IdempotencyName = "idempotency_key"

// idempotencyField returns a hidden field with a new idempotency key.
func idempotencyField() template.HTML {
	return template.HTML(`<input type="hidden" name="` + IdempotencyName + `" value="` + strings.ToLower(rand.Text()) + `">`)
}

// dict builds the data of a part from names and values.
func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, fmt.Errorf("web: dict needs pairs, got %d values", len(pairs))
	}
	m := make(map[string]any)
	for i := 0; i < len(pairs); i += 2 {
		name, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("web: dict: %v is not a name", pairs[i])
		}
		m[name] = pairs[i+1]
	}
	return m, nil
}

// sum adds numbers.
func sum(numbers ...float64) (total float64) {
	for _, n := range numbers {
		total += n
	}
	return total
}

// initials returns the first letters of a name, for its avatar.
func initials(name string) string {
	words := strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune(" .-_@", r) })
	text := ""
	for _, w := range words[:min(len(words), 2)] {
		text += strings.ToUpper(string([]rune(w)[:1]))
	}
	return text
}

// short returns the beginning and the end of a digest.
func short(digest string) string {
	if len(digest) <= 12 {
		return digest
	}
	return digest[:4] + "…" + digest[len(digest)-4:]
}

// jsonValue renders a JSON value verbatim.
func jsonValue(texts texts.Translation, data json.RawMessage) template.HTML {
	return safehtml.JSON(data, safehtml.Labels{
		Fold: func(size string) string { return texts.Text("value.fold", size) }, Empty: texts.Text("value.empty"),
		Characters: func(n int) string { return texts.Count("value.characters", n) }, Items: func(n int) string { return texts.Count("value.items", n) },
	})
}

// isSystem reports whether the id is that of a component of the server, such as system:run.
func isSystem(id string) bool { return strings.HasPrefix(id, "system:") }
