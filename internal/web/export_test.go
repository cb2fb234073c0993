package web

import (
	"maps"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/internal/web/page"
	"github.com/fermata-go/fermata/internal/web/texts"
)

// NewTranslated returns the pages with other texts in each language.
func NewTranslated(config Config, translate func(language, text string) string) (*Site, error) {
	all := make(map[string]texts.Translation)
	for language, table := range texts.Languages {
		all[language] = make(texts.Translation)
		for key, text := range table {
			all[language][key] = translate(language, text)
		}
	}
	return newSite(config, all)
}

// Keys returns the English texts by key.
func Keys() map[string]string { return texts.English }

// Languages returns the texts by language and key.
func Languages() map[string]texts.Translation { return texts.Languages }

// RoutePatterns returns the patterns of all pages.
func RoutePatterns() (all []string) {
	for _, routes := range routesOf(nil) {
		all = slices.AppendSeq(all, maps.Keys(routes))
	}
	return all
}

// StaticPath returns the path of a static file.
func (s *Site) StaticPath(name string) string {
	path, err := s.shell.StaticURL(name)
	if err != nil {
		panic(err)
	}
	return path
}

// Policy is the content security policy.
var Policy = strings.TrimSpace(page.ContentPolicy)
