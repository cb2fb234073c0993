package web

import "strings"

// NewTranslated returns the pages in another language.
func NewTranslated(config Config, translate func(string) string) (*Site, error) {
	texts := make(translation)
	for key, text := range english {
		texts[key] = translate(text)
	}
	return newSite(config, texts)
}

// Keys returns the keys of all texts.
func Keys() map[string]string { return english }

// RoutePatterns returns the patterns of all pages.
func RoutePatterns() (all []string) {
	for _, r := range routes {
		all = append(all, r.pattern)
	}
	return all
}

// StaticPath returns the path of a static file.
func (s *Site) StaticPath(name string) string {
	path, err := s.assets.url(name)
	if err != nil {
		panic(err)
	}
	return path
}

// Policy is the content security policy.
var Policy = strings.TrimSpace(contentPolicy)

// BrowserName names a browser by its User-Agent.
func BrowserName(agent string) string { return browserName(agent) }
