#compdef fermata
# zsh completion for fermata. For this shell: source <(fermata completion zsh)
# For all: fermata completion zsh > a file named _fermata in a directory of $fpath
_fermata() {
  local line
  local -a found
  while IFS= read -r line; do
    found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done < <("${words[1]}" __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)
  if (( ${#found} )); then
    _describe 'fermata' found
  else
    _files
  fi
}
if [ "$funcstack[1]" = _fermata ]; then
  _fermata "$@"
else
  compdef _fermata fermata
fi
