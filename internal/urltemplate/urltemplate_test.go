package urltemplate_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/urltemplate"
)

func TestExpand_EscapesValues(t *testing.T) {
	parsed, err := urltemplate.Parse("https://shop.example.com/orders/{order}/lines?lang={lang}&again={order}")
	if err != nil || !slices.Equal(parsed.Names(), []string{"order", "lang"}) {
		t.Fatalf("%v, %v", parsed.Names(), err)
	}
	got, err := parsed.Expand(map[string]string{"order": "A 1?b#c..", "lang": "d&e=f/../%2f"})
	if want := "https://shop.example.com/orders/A%201%3Fb%23c../lines?lang=d%26e%3Df%2F..%2F%252f&again=A+1%3Fb%23c.."; err != nil || got != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}

func TestExpand_RejectsValuesThatChangeThePath(t *testing.T) {
	parsed, err := urltemplate.Parse("https://shop.example.com/a/{one}{two}/b")
	if err != nil {
		t.Fatal(err)
	}
	for _, values := range []map[string]string{{"one": "x"}, {}} {
		if got, err := parsed.Expand(values); err == nil {
			t.Errorf("%v: %s", values, got)
		}
	}
	for _, values := range [][2]string{
		{".", "."}, {"%2e", "%2E"}, {"%25", "2e."}, {".", ".;x"}, {"../../admin/", "users"}, {"a", "/b"}, {"a", `\b`}, {"a", "\x00"}, {"a", "%00"},
		{"a", "%2fb"}, {"a", "%5Cb"}, {"a", "%252Fb"}, {"a", "%25252fb"}, {"%", "2fb"}, {"%2", "fb"}, {"a", "%%32f"}, {"a", "%c0%af"},
	} {
		if got, err := parsed.Expand(map[string]string{"one": values[0], "two": values[1]}); err == nil {
			t.Errorf("%q: %s", values, got)
		}
	}
	for _, value := range []string{"100%", "%zz", "a.b", "...", "a..b", "é", "a;b", "1:2@3"} {
		if _, err := parsed.Expand(map[string]string{"one": value, "two": "x"}); err != nil {
			t.Errorf("%q: %v", value, err)
		}
	}
}

// The configuration may have an escaped slash in the path. A value may not.
func TestExpand_KeepsTheEscapesOfTheTemplate(t *testing.T) {
	parsed, err := urltemplate.Parse("https://git.example.com/projects/a%2F{project}/issues")
	if err != nil {
		t.Fatal(err)
	}
	got, err := parsed.Expand(map[string]string{"project": "b"})
	if want := "https://git.example.com/projects/a%2Fb/issues"; err != nil || got != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	for _, value := range []string{"..", "b/c", "b%2Fc"} {
		if got, err := parsed.Expand(map[string]string{"project": value}); err == nil {
			t.Errorf("%s: %s", value, got)
		}
	}
}

func TestParse_RejectsBadTemplates(t *testing.T) {
	for text, want := range map[string]string{
		"https://{host}/a":              "only the path and the query",
		"https://a{x}.example.com?b":    "only the path and the query",
		"https://a.example.com/{x y}":   "is not a placeholder",
		"https://a.example.com/{}":      "is not a placeholder",
		"https://a.example.com/{x":      "a brace has no partner",
		"https://a.example.com/x}":      "a brace has no partner",
		"https://a.example.com/%zz/{x}": "it is not a URL",
	} {
		if _, err := urltemplate.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// No value changes the host, or the number of segments and parameters.
func FuzzExpand(f *testing.F) {
	for _, seed := range []string{"a", "..", "a/b", "%2f", "?x=1", "#", "\x00", "é", "a&b=c"} {
		f.Add(seed)
	}
	parsed, err := urltemplate.Parse("https://shop.example.com/orders/{v}/lines?q={v}")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, value string) {
		got, err := parsed.Expand(map[string]string{"v": value})
		if err != nil {
			return
		}
		u, err := url.Parse(got)
		if err != nil {
			t.Fatalf("%q: %v", value, err)
		}
		if u.Host != "shop.example.com" || strings.Count(u.EscapedPath(), "/") != 3 || u.Path != "/orders/"+value+"/lines" || len(u.Query()) != 1 || u.Query().Get("q") != value {
			t.Errorf("%q: %s", value, got)
		}
	})
}
