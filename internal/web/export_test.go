package web

import (
	"maps"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/internal/web/page"
	"github.com/fermata-go/fermata/internal/web/texts"
)

// NewTranslated returns the pages in another language.
func NewTranslated(config Config, translate func(string) string) (*Site, error) {
	translated := make(texts.Translation)
	for key, text := range texts.English {
		translated[key] = translate(text)
	}
	return newSite(config, translated)
}

// Keys returns the keys of all texts.
func Keys() map[string]string { return texts.English }

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
