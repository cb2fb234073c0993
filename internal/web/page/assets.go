package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/internal/language"
)

// assets serves the static files. Their path contains a hash of all of them, so browsers may keep
// them forever.
type assets struct {
	prefix string // with a slash at the end
	files  map[string]asset
	icons  string
}

type asset struct {
	kind        string
	plain, gzip []byte
}

// layers is the order of the style sheets, which are served as one file; those of pages follow.
var layers = []string{"tokens.css", "base.css", "components.css"}

func loadAssets(files fs.FS) (*assets, error) {
	all, err := fs.Glob(files, "static/*")
	if err != nil {
		return nil, err
	}
	pages, err := fs.Glob(files, "static/pages/*.css")
	if err != nil {
		return nil, err
	}
	a := &assets{files: make(map[string]asset)}
	var css bytes.Buffer
	sheets := slices.Concat(layers, pages)
	for _, name := range sheets {
		text, err := fs.ReadFile(files, "static/"+strings.TrimPrefix(name, "static/"))
		if err != nil {
			return nil, err
		}
		css.Write(text)
		css.WriteByte('\n')
	}
	if err := a.add("app.css", css.Bytes()); err != nil {
		return nil, err
	}
	hash := sha256.New()
	hash.Write(css.Bytes())
	for _, name := range all {
		base := path.Base(name)
		if base == "pages" || path.Ext(base) == ".css" {
			continue
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		if base == "icons.svg" {
			a.icons = string(text)
		}
		fmt.Fprintln(hash, base, len(text))
		hash.Write(text)
		if err := a.add(base, text); err != nil {
			return nil, err
		}
	}
	a.prefix = "/static/" + hex.EncodeToString(hash.Sum(nil))[:16] + "/"
	return a, nil
}

func (a *assets) add(name string, text []byte) error {
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write(text); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	kind := mime.TypeByExtension(path.Ext(name))
	switch path.Ext(name) { // the types of the machine's files may differ
	case ".js":
		kind = "text/javascript; charset=utf-8"
	case ".css":
		kind = "text/css; charset=utf-8"
	case ".png":
		kind = "image/png"
	}
	a.files[name] = asset{kind: kind, plain: text, gzip: packed.Bytes()}
	return nil
}

// url returns the path of a file.
func (a *assets) url(name string) (string, error) {
	if _, ok := a.files[name]; !ok {
		return "", fmt.Errorf("web: there is no static file %q", name)
	}
	return a.prefix + name, nil
}

// ServeHTTP serves a file.
func (a *assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	file, ok := a.files[strings.TrimPrefix(r.URL.Path, a.prefix)]
	if !ok {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", file.kind)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Vary", "Accept-Encoding")
	body := file.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") && len(file.gzip) < len(file.plain) {
		h.Set("Content-Encoding", "gzip")
		body = file.gzip
	}
	_, _ = w.Write(body) // a disconnected client does not read it
}

// manifest describes the pages as an installable application.
func (s *Shell) manifest(w http.ResponseWriter, r *http.Request) {
	lang := language.Of(r)
	texts := s.Config.Languages[lang]
	icon := func(name, sizes, kind, purpose string) map[string]string {
		path, _ := s.assets.url(name) // a test checks the files
		return map[string]string{"src": path, "sizes": sizes, "type": kind, "purpose": purpose}
	}
	text, err := json.Marshal(map[string]any{
		"id": "/inbox", "lang": lang, "name": texts.Text("app.name"), "short_name": texts.Text("app.name"), "description": texts.Text("app.about"), "start_url": "/inbox", "scope": "/",
		"display": "standalone", "background_color": "#f9fafc", "theme_color": "#2f5bd7",
		"icons": []map[string]string{
			icon("icon.svg", "any", "image/svg+xml", "any"), icon("icon-192.png", "192x192", "image/png", "any"), icon("icon-512.png", "512x512", "image/png", "any"),
			icon("icon-maskable-512.png", "512x512", "image/png", "maskable"),
		},
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/manifest+json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(text)
}
