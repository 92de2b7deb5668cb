package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// manualDate is when the page's own words were last written; the same program makes the same page.
const manualDate = "2026-11-22"

// newManCommand prints the manual page that a package installs.
func newManCommand(app *App) *cobra.Command {
	return &cobra.Command{
		Use: "man", Short: "Print the manual page accession(1)", Hidden: true, Args: positional(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return writeManual(app.Stdout, cmd.Root()) },
	}
}

// writeManual writes every command on one page, in the man macros that both groff and mandoc read.
func writeManual(out io.Writer, root *cobra.Command) error {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH ACCESSION 1 "+manualDate+" %s \"User Commands\"\n", quoted("accession "+programVersion()))
	b.WriteString(".nh\n.SH NAME\naccession \\- custody of documents, and bounded context from them\n")
	b.WriteString(".SH SYNOPSIS\n.B accession\n.I COMMAND\n[\\fIflags\\fR]\n.SH DESCRIPTION\n")
	b.WriteString(roff(root.Long) + "\n.SH COMMANDS\n")
	manualOf(&b, root)
	b.WriteString(`.SH ENVIRONMENT
.TP
.BR ACCESSION_URL ", " ACCESSION_ORG ", " ACCESSION_TOKEN ", " ACCESSION_ADMIN_TOKEN
Address of the service, organization, its credential, the administrator's token.
.TP
.B ACCESSION_PROFILE
The profile for what neither a flag nor these variables give.
.TP
.BR NO_COLOR ", " TERM=dumb
No colours, nothing drawn anew.
.PP
Settings of
.B accession serve
have variables of their own:
.B accession serve \-\-help
names them.
.SH FILES
.TP
.I ~/.config/accession/profiles.json
Profiles, mode 0600 (below XDG_CONFIG_HOME where that is set).
.TP
.I ~/.local/state/accession/uploads
Notes of unfinished uploads, without credentials (below XDG_STATE_HOME where that is set).
.SH EXIT STATUS
`)
	for _, line := range []struct{ code, text string }{
		{"0", "Done."},
		{"1", "Failure."},
		{"2", "The command line has to be written differently."},
		{"3", "Not authorised."},
		{"4", "Not found."},
		{"5", "Conflict."},
		{"6", "Content rejected, or a gate failed."},
		{"7", "The service is unavailable."},
		{"130", "Interrupted."},
	} {
		fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", line.code, line.text)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// manualOf writes the commands below cmd, each with its own flags.
func manualOf(b *strings.Builder, cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		if !sub.IsAvailableCommand() || sub.Name() == "help" {
			continue
		}
		fmt.Fprintf(b, ".SS %s\n", quoted(sub.CommandPath()))
		about := first(sub.Long, sub.Short+".")
		fmt.Fprintf(b, "%s\n", roff(about))
		if !sub.HasAvailableSubCommands() {
			fmt.Fprintf(b, ".PP\n.B %s\n", roff(sub.UseLine()))
		}
		sub.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			if flag.Hidden || flag.Name == "help" {
				return
			}
			name := "\\-\\-" + roff(flag.Name)
			if flag.Shorthand != "" {
				name = "\\-" + flag.Shorthand + ", " + name
			}
			kind, usage := pflag.UnquoteUsage(flag)
			if kind != "" {
				kind = " \\fI" + roff(kind) + "\\fR"
			}
			// A default that this computer's environment set is no part of the page.
			fmt.Fprintf(b, ".TP\n\\fB%s\\fR%s\n%s\n", name, kind, roff(usage))
		})
		if sub.HasExample() {
			fmt.Fprintf(b, ".PP\nExample:\n.PP\n.nf\n.RS 4\n%s\n.RE\n.fi\n", roff(strings.TrimRight(sub.Example, "\n")))
		}
		manualOf(b, sub)
	}
}

// roff escapes text: nothing in it is a request.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, `-`, `\-`, "…", "...").Replace(strings.TrimRight(text, " \n"))
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
		if line == "" {
			lines[i] = ".PP"
		}
	}
	return strings.Join(lines, "\n")
}

// quoted is one argument of a request.
func quoted(text string) string { return `"` + strings.ReplaceAll(roff(text), `"`, `\(dq`) + `"` }
