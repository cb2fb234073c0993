# fish completion for fermata. For this shell: fermata completion fish | source
# For all: fermata completion fish > ~/.config/fish/completions/fermata.fish
function __fermata_complete
    set -l words (commandline -opc) (commandline -ct)
    $words[1] __complete -- $words[2..-1] 2>/dev/null
end
complete -c fermata -a '(__fermata_complete)'
