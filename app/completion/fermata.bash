# bash completion for fermata. For this shell: source <(fermata completion bash)
# For all: fermata completion bash > ~/.local/share/bash-completion/completions/fermata
_fermata() {
  local IFS=$'\n' line
  COMPREPLY=()
  while read -r line; do
    COMPREPLY+=("${line%%$'\t'*}")
  done < <("${COMP_WORDS[0]}" __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _fermata fermata
