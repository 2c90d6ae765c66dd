package main

import "testing"

// The wanted texts are what Java prints for (double) key.hashCode().
func TestScoreIsPrintedAsJavaDoes(t *testing.T) {
	for key, want := range map[string]string{
		"":                        "0.0",
		"user":                    "3599307.0",
		"user5":                   "1.1157857E8",
		"users":                   "1.11578632E8",
		"user6284781860667377211": "-5.94971599E8",
		"user594798593157429144":  "1.618885067E9",
		"polygenelubricants":      "-2.147483648E9",
	} {
		if got := score(key); got != want {
			t.Errorf("score(%q) = %s, want %s", key, got, want)
		}
	}
}
