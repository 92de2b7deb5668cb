package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

func newConfigCommand(app *App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check and show the settings of serve, without starting it",
		Args:  noSuchCommand,

		SuggestionsMinimumDistance: 2,

		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newConfigCheckCommand(app), newConfigShowCommand(app))
	return cmd
}

func newConfigCheckCommand(app *App) *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "check [--config FILE]",
		Short: "Check every setting as serve would; exit code 2 and a sentence where one cannot work",
		Long: `Reads flags, environment and configuration file as serve does, and checks every setting, without starting anything.
Engines and stores are not asked: see accession doctor.`,
		Args: positional(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.check(cmd.Flags()); err != nil {
				return err
			}
			for _, warning := range s.doubts(app.Environ) {
				fmt.Fprintln(app.Stderr, "warning:", printable(warning))
			}
			fmt.Fprintln(app.Stdout, "the settings are right")
			return nil
		},
	}
	s.flags(cmd.Flags(), app.Getenv)
	return cmd
}

func newConfigShowCommand(app *App) *cobra.Command {
	var s settings
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show [--config FILE]",
		Short: "Show every setting, its value, and where it came from; secrets are masked",
		Args:  positional(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.load(cmd.Flags()); err != nil {
				return err
			}
			wrong := s.validate() // shown all the same: whoever asks looks for what is wrong
			if err := app.showSettings(s.shown(), asJSON); err != nil {
				return err
			}
			return wrong
		},
	}
	s.flags(cmd.Flags(), app.Getenv)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the settings as JSON")
	return cmd
}

// shownSetting is a setting as anybody may see it.
type shownSetting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Source string `json:"source"` // default, flag, environment, file
	At     string `json:"at,omitempty"`
}

func (s *settings) shown() (shown []shownSetting) {
	for _, one := range s.all {
		line := shownSetting{Name: one.name, Value: one.shown(), Source: string(one.given.by)}
		if one.given.by != byDefault {
			line.At = one.given.at
		}
		shown = append(shown, line)
	}
	return shown
}

// shown is the value without what is secret in it.
func (one *setting) shown() string {
	text := fmt.Sprint(one.value.Interface())
	if one.secret == "yes" && text != "" {
		return masked
	}
	if one.secret == "url" { // one URL: what is none may hold a password anywhere
		if text != "" && !strings.Contains(text, "://") {
			return masked
		}
		return maskURL(text)
	}
	parts := strings.Split(text, ",")
	for i := range parts {
		parts[i] = maskURL(parts[i])
	}
	return strings.Join(parts, ",")
}

const masked = "(set, not shown)"

// secretParameter is a query parameter whose value is nobody's business.
var secretParameter = regexp.MustCompile(`(?i)pass|secret|token|key|credential|signature`)

// maskURL takes passwords out of a URL. What cannot be read as one is not shown at all: a password may have broken it.
func maskURL(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	u, err := url.Parse(text)
	if err != nil {
		return masked
	}
	query := u.Query()
	// Where there is an @ elsewhere, what stands before it was taken for something else, or is another URL's.
	if strings.Contains(u.Host+u.Path+fmt.Sprint(query)+u.Fragment, "@") {
		return masked
	}
	for name := range query {
		if secretParameter.MatchString(name) {
			query.Set(name, "xxxxx")
		}
	}
	if u.RawQuery != "" {
		u.RawQuery = query.Encode()
	}
	return u.Redacted()
}

func (a *App) showSettings(shown []shownSetting, asJSON bool) error {
	if asJSON {
		b, err := json.Marshal(shown)
		if err != nil {
			return err
		}
		return a.printData(b)
	}
	table := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	for _, line := range shown {
		from := line.At
		if from == "" {
			from = line.Source
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", line.Name, printable(line.Value), printable(from))
	}
	return table.Flush()
}
