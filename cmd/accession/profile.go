package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/accession/accession/client"
)

const envProfile = "ACCESSION_PROFILE"

func newProfileCommand(app *App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "profile",
		Short: "Keep the address of a service, an organization and credentials under a name",
		Long: `Keeps the address of a service, an organization and its credentials under a name, in profiles.json (mode 0600) in the
user's configuration folder. ` + envProfile + ` chooses one; without, the one in use. A flag goes before the environment, the environment
before that profile. --profile NAME chooses one too, and what it holds goes before the environment. A profile's credential is sent
to the profile's address only, and one of the environment to no profile's address but that which ` + envServer + ` names.`,
		Args: noSuchCommand,

		SuggestionsMinimumDistance: 2,

		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newAddProfileCommand(app), newListProfilesCommand(app), newUseProfileCommand(app), newShowProfileCommand(app), newRemoveProfileCommand(app))
	return cmd
}

func newAddProfileCommand(app *App) *cobra.Command {
	given := profile{}
	var credentialFile, readerFile, adminFile string
	var update, use bool
	cmd := &cobra.Command{
		Use:   "add NAME --url URL [--org ORG]",
		Short: "Add a profile; its credentials come from files, standard input or a hidden prompt",
		Long: `Adds a profile. A credential is read from the file that a flag names, from standard input where that is -, or, on a
terminal, from a prompt that does not show it; it is never part of the command line. --update changes a profile: what is not given
stays. The first profile is in use at once.`,
		Example: `  accession profile add harbour --url https://custody.example --org harbour --credential-file upload.token
  accession credentials issue --org harbour --role ai_reader | accession profile add harbour --update --reader-file -`,
		Args: positional(0, "NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			if !profileName.MatchString(name) {
				return usagef("%q is no name of a profile: letters, digits, . _ -, at most 64, the first a letter or digit", name)
			}
			if given.URL == "" && !update {
				return usagef("no address: give --url, such as --url https://custody.example")
			}
			if given.URL != "" {
				if _, err := client.New(given.URL, client.WithToken("unused")); err != nil {
					return usagef("--url: %v", err)
				}
			}
			if err := app.readCredentials(&given, credentialFile, readerFile, adminFile, !update); err != nil {
				return err
			}
			inUse := false
			err := app.changeProfiles(func(kept *profiles) error {
				before, exists := kept.Profiles[name]
				switch {
				case exists && !update:
					return usagef("there is a profile %s: change it with --update, or remove it first", name)
				case !exists && update:
					return usagef("there is no profile %s to update: leave --update out", name)
				case exists && given.URL != "" && !sameAddress(given.URL, before.URL) && given.Credential+given.Reader+given.AdminToken == "" && before.Credential+before.Reader+before.AdminToken != "":
					return usagef("the credentials of %s belong to %s: give those of the new address with it", name, before.URL)
				case exists && given.URL != "" && !sameAddress(given.URL, before.URL):
					before = profile{Org: before.Org} // none of the old address's credentials may reach the new one
				}
				kept.Profiles[name] = profile{
					URL: first(given.URL, before.URL), Org: first(given.Org, before.Org), Credential: first(given.Credential, before.Credential),
					Reader: first(given.Reader, before.Reader), AdminToken: first(given.AdminToken, before.AdminToken),
				}
				if use || len(kept.Profiles) == 1 {
					kept.Current = name
				}
				inUse = kept.Current == name
				return nil
			})
			if err != nil {
				return err
			}
			what := "added"
			if update {
				what = "changed"
			}
			fmt.Fprintf(app.Stdout, "%s %s", what, name)
			if inUse {
				fmt.Fprint(app.Stdout, ", in use")
			}
			fmt.Fprintln(app.Stdout)
			return nil
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&given.URL, "url", "", "address of the service")
	flags.StringVar(&given.Org, "org", "", "organization the credentials are bound to")
	flags.StringVar(&credentialFile, "credential-file", "", "file with a credential of the organization, - for standard input")
	flags.StringVar(&readerFile, "reader-file", "", "file with a credential of the role "+client.RoleAIReader+", - for standard input")
	flags.StringVar(&adminFile, "admin-token-file", "", "file with the admin token, - for standard input")
	flags.BoolVar(&update, "update", false, "change an existing profile; what is not given stays")
	flags.BoolVar(&use, "use", false, "use it from now on")
	return cmd
}

// readCredentials fills the profile from the named files, or asks on a terminal where none is named and ask allows it.
func (a *App) readCredentials(p *profile, credentialFile, readerFile, adminFile string, ask bool) error {
	sources := []struct {
		file, prompt string
		into         *string
	}{
		{credentialFile, "credential of the organization", &p.Credential},
		{readerFile, "credential of the role " + client.RoleAIReader, &p.Reader},
		{adminFile, "admin token", &p.AdminToken},
	}
	named, piped := 0, 0
	for _, s := range sources {
		if s.file != "" {
			named++
		}
		if s.file == "-" {
			piped++
		}
	}
	if piped > 1 {
		return usagef("standard input holds one credential: name files for the others")
	}
	if named == 0 && ask {
		if a.ReadSecret == nil {
			return usagef("no credential: name a file with --credential-file, --reader-file or --admin-token-file; - is standard input")
		}
		for _, s := range sources {
			text, err := a.ReadSecret(s.prompt + " (not shown; Enter leaves it out): ")
			if err != nil {
				return fmt.Errorf("no credential was read: %w", err)
			}
			*s.into = strings.TrimSpace(text)
		}
		if p.Credential+p.Reader+p.AdminToken == "" {
			return usagef("no credential was given")
		}
	}
	conn := connection{app: a}
	for _, s := range sources {
		if s.file == "" {
			continue
		}
		token, err := conn.secret(s.file)
		if err != nil {
			return err
		}
		*s.into = token
	}
	for _, s := range sources {
		if strings.ContainsFunc(*s.into, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return usagef("the %s holds characters that no credential has; copy it again", s.prompt)
		}
	}
	return nil
}

// shownProfile is a profile as anybody may see it.
type shownProfile struct {
	Name       string `json:"name"`
	InUse      bool   `json:"in_use"`
	URL        string `json:"url"`
	Org        string `json:"org"`
	Credential string `json:"credential,omitempty"`
	Reader     string `json:"reader,omitempty"`
	AdminToken string `json:"admin_token,omitempty"`
}

func (p *profiles) shown(name string) shownProfile {
	mask := func(secret string) string {
		if secret == "" {
			return ""
		}
		return masked
	}
	one := p.Profiles[name]
	return shownProfile{name, name == p.Current, maskURL(one.URL), one.Org, mask(one.Credential), mask(one.Reader), mask(one.AdminToken)}
}

func newListProfilesCommand(app *App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the profiles; * marks the one in use",
		Args:  positional(0),
		RunE: func(*cobra.Command, []string) error {
			kept, err := app.profiles()
			if err != nil {
				return err
			}
			shown := []shownProfile{}
			for _, name := range kept.names() {
				shown = append(shown, kept.shown(name))
			}
			if asJSON {
				return app.printJSON(shown)
			}
			if len(shown) == 0 {
				fmt.Fprintln(app.Stderr, "no profiles; add one with accession profile add")
			}
			table := tabwriter.NewWriter(app.Stdout, 0, 0, 2, ' ', 0)
			for _, p := range shown {
				mark, holds := " ", []string{}
				if p.InUse {
					mark = "*"
				}
				for _, one := range []struct{ what, secret string }{{"credential", p.Credential}, {"reader", p.Reader}, {"admin token", p.AdminToken}} {
					if one.secret != "" {
						holds = append(holds, one.what)
					}
				}
				fmt.Fprintf(table, "%s %s\t%s\t%s\t%s\n", mark, p.Name, oneLine(p.URL), oneLine(p.Org), strings.Join(holds, ", "))
			}
			return table.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the profiles as JSON; credentials are masked")
	return cmd
}

func newShowProfileCommand(app *App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show [NAME]",
		Short: "Show a profile, or the one in use; credentials are masked",
		Args:  positional(1, "[NAME]"),
		RunE: func(_ *cobra.Command, args []string) error {
			kept, err := app.profiles()
			if err != nil {
				return err
			}
			name := app.env(envProfile, kept.Current)
			if len(args) == 1 {
				name = args[0]
			}
			if _, err := kept.find(name); err != nil {
				return err
			}
			shown := kept.shown(name)
			if asJSON {
				return app.printJSON(shown)
			}
			app.row("profile", shown.Name)
			app.row("url", shown.URL)
			app.row("org", shown.Org)
			app.row("credential", shown.Credential)
			app.row("reader", shown.Reader)
			app.row("admin token", shown.AdminToken)
			if path, err := app.profilesFile(); err == nil {
				app.row("kept in", path)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the profile as JSON; credentials are masked")
	return cmd
}

func newUseProfileCommand(app *App) *cobra.Command {
	return &cobra.Command{
		Use:   "use NAME",
		Short: "Use a profile where neither --profile nor " + envProfile + " names one",
		Args:  positional(0, "NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			err := app.changeProfiles(func(kept *profiles) error {
				_, err := kept.find(args[0])
				kept.Current = args[0]
				return err
			})
			if err == nil {
				_, err = fmt.Fprintf(app.Stdout, "%s is in use\n", args[0])
			}
			return err
		},
	}
}

func newRemoveProfileCommand(app *App) *cobra.Command {
	return &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a profile and its credentials from this computer; they are not revoked",
		Args:  positional(0, "NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			err := app.changeProfiles(func(kept *profiles) error {
				_, err := kept.find(args[0])
				delete(kept.Profiles, args[0])
				if kept.Current == args[0] {
					kept.Current = ""
				}
				return err
			})
			if err == nil {
				_, err = fmt.Fprintf(app.Stdout, "removed %s; its credentials are valid until they expire or are revoked\n", args[0])
			}
			return err
		},
	}
}

// find returns a profile by name.
func (p *profiles) find(name string) (profile, error) {
	one, ok := p.Profiles[name]
	switch {
	case ok:
		return one, nil
	case len(p.Profiles) == 0:
		return one, &adviceError{&nothingFoundError{"there are no profiles"}, "accession profile add NAME --url URL adds one"}
	case name == "":
		return one, &adviceError{&nothingFoundError{"no profile is in use"}, "name one of " + strings.Join(p.names(), ", ")}
	}
	return one, &adviceError{&nothingFoundError{fmt.Sprintf("there is no profile %q", name)}, "name one of " + strings.Join(p.names(), ", ")}
}

// printJSON prints what this program made itself.
func (a *App) printJSON(value any) error {
	b, err := json.Marshal(value)
	if err != nil {
		return errors.New("the answer cannot be encoded")
	}
	return a.printData(b)
}
