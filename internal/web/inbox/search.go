package inbox

import (
	"html/template"

	"github.com/fermata-go/fermata/internal/search"
	"github.com/fermata-go/fermata/internal/web/texts"
)

// operator is an operator of the search with its explanation.
type operator struct{ Example, Help string }

// Funcs returns the template functions of the inbox.
func Funcs(texts texts.Translation) template.FuncMap {
	return template.FuncMap{"operators": func() []operator { return operators(texts) }}
}

// operators returns the operators of the search, for the help next to the box.
func operators(texts texts.Translation) (all []operator) {
	for _, o := range search.Operators() {
		all = append(all, operator{o.Example, texts.Text("inbox.op." + o.Name)})
	}
	return all
}
