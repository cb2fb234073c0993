package safehtml

import "testing"

func TestLooksLike_NamesThatCannotBeToldApart(t *testing.T) {
	for pair, want := range map[[2]string]bool{
		{"copa", "сора"}:   true, // Cyrillic
		{"ann", "ann"}:     false,
		{"ann", "anna"}:    false,
		{"alice", "aIice"}: true,
		{"bob1", "bobl"}:   true,
		{"b0b", "bob"}:     true,
		{"Ivo", "ІvО"}:     true,
		{"anna", "Анна"}:   false, // its н looks like no Latin letter
		{"ann", "bob"}:     false,

		{"ann blum", "ann  blum"}:     true,
		{"ann blum", "ann\u00a0blum"}: true,
		{"ann blum", "annblum"}:       false,
		{"Andr\u00e9", "Andre\u0301"}: true, // composed and decomposed
		{"Andr\u00e9", "Andre"}:       false,
		{"Pfiff", "P\ufb01ff"}:        true, // a ligature
		{"bob", "\uff42\uff4f\uff42"}: true, // wide letters
	} {
		if got := LooksLike(pair[0], pair[1]); got != want || LooksLike(pair[1], pair[0]) != want {
			t.Errorf("%q and %q: %t", pair[0], pair[1], got)
		}
	}
}
