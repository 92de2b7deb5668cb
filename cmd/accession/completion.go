package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/accession/accession/client"
)

var shells = []string{"bash", "zsh", "fish"}

func newCompletionCommand(app *App) *cobra.Command {
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print what makes a shell complete commands, flags, profiles and files: bash, zsh or fish",
		Long: `Prints a script that makes the shell complete commands, flags, their values, profiles, and the uploads that this
computer has not finished. It asks no service.`,
		Example: `  accession completion bash > ~/.local/share/bash-completion/completions/accession
  accession completion zsh > "${fpath[1]}/_accession"
  accession completion fish > ~/.config/fish/completions/accession.fish`,
		Args:      positional(0, "SHELL"),
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				if err := root.GenBashCompletionV2(app.Stdout, true); err != nil {
					return err
				}
				_, err := fmt.Fprint(app.Stdout, plainBash)
				return err
			case "zsh":
				return root.GenZshCompletion(app.Stdout)
			case "fish":
				return root.GenFishCompletion(app.Stdout, true)
			}
			return usagef("no completion for %q: name %s", args[0], strings.Join(shells, ", "))
		},
	}
}

// plainBash is what cobra's script needs of the package bash-completion, for where that is not installed.
const plainBash = `
if ! declare -F _get_comp_words_by_ref >/dev/null; then
    _get_comp_words_by_ref()
    {
        cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=("${COMP_WORDS[@]}") cword=$COMP_CWORD
    }
fi
`

// takesFiles are the commands whose arguments are files.
var takesFiles = map[string]bool{"accession upload": true, "accession receipt verify": true, "accession audit verify": true}

// takesUploads are those whose argument is an upload.
var takesUploads = map[string]bool{"accession status": true, "accession watch": true, "accession withdraw": true}

// completions tells cobra what may follow, for every command below root. What is not known here completes to nothing, so that no
// file name is offered where an id has to stand; flags of serve keep the shell's own file names.
func (a *App) completions(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		a.completions(sub)
	}
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if complete := a.completeFlag(flag.Name); complete != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag.Name, complete) // fails only where it is set already
		}
	})
	if cmd.ValidArgsFunction != nil || len(cmd.ValidArgs) > 0 || takesFiles[cmd.CommandPath()] {
		return
	}
	switch path := cmd.CommandPath(); {
	case takesUploads[path]:
		cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return a.unfinishedUploads(), cobra.ShellCompDirectiveNoFileComp
		}
	case strings.HasPrefix(path, "accession profile ") && cmd.Name() != "add" && cmd.Name() != "list":
		cmd.ValidArgsFunction = a.completeProfile
	case strings.HasPrefix(path, "accession credentials signing-keys rotate"):
		cmd.ValidArgs = []cobra.Completion{client.PurposeCredential, client.PurposeOAuth, client.PurposeReceipt}
	default:
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
}

func (a *App) completeFlag(name string) cobra.CompletionFunc {
	switch name {
	case "profile":
		return a.completeProfile
	case "role":
		return cobra.FixedCompletions([]cobra.Completion{client.RoleUpload, client.RoleAIReader}, cobra.ShellCompDirectiveNoFileComp)
	case "importance":
		return cobra.FixedCompletions([]cobra.Completion{"normal", "important"}, cobra.ShellCompDirectiveNoFileComp)
	case "org", "server", "url", "notes", "material-type", "consent-user-id", "consent-email", "expires-at", "overlap", "scope", "concurrency", "reason":
		return cobra.NoFileCompletions
	}
	return nil
}

// completeProfile offers the names of profiles. A file of profiles that cannot be read offers none.
func (a *App) completeProfile(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	kept, err := a.profiles()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []cobra.Completion
	for _, name := range kept.names() {
		names = append(names, cobra.CompletionWithDesc(name, printable(fmt.Sprint(kept.Profiles[name].URL))))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// unfinishedUploads are the uploads of the notes in the user's state folder.
func (a *App) unfinishedUploads() []cobra.Completion {
	var ids []cobra.Completion
	for _, note := range a.notes() {
		if note.Transfer.UploadID != "" {
			ids = append(ids, cobra.CompletionWithDesc(note.Transfer.UploadID, oneLine(note.Transfer.Request.Filename)))
		}
	}
	return ids
}
