import { shellWord } from '../../platform/errors.js'
import { similar } from '../../platform/nearest.js'

/** The words of other programs, by what they mean here. An option is suggested only if the command has it; the first match counts. COUNT is a number. */
export const habits: Readonly<Record<string, readonly string[]>> = {
  'list --search TEXT': ['search', 'find', 'grep', 'query', 'filter'],
  'update ID --name TEXT': ['edit', 'modify', 'change', 'rename', 'patch', 'put'],
  'delete ID': ['remove', 'del', 'destroy', 'erase'],
  'import FILE': ['load', 'upload', 'ingest'],
  'list --format csv': ['csv'],
  'list --fields id,name': ['list --columns'],
  'export --out FILE': ['dump', 'download', 'list --out', 'list --file', 'list --output-file'],
  'backup FILE': ['save', 'copy', 'snapshot'],
  'restore FILE': ['recover', 'undo', 'rollback'],
  serve: ['server', 'start', 'run', 'up', 'daemon', 'listen'],
  'auth login': ['login', 'signin'],
  'auth logout': ['logout', 'signout'],
  'auth status': ['whoami', 'auth list', 'auth show', 'auth get', 'auth whoami'],
  'tokens revoke ID': ['tokens delete', 'tokens remove', 'tokens rm'],
  'stores use STORE': ['use', 'switch', 'context', 'stores switch', 'stores set', 'stores select'],
  'stores list': ['stores current', 'stores show', 'current', 'contexts'],
  'stores init ADDRESS': ['init', 'migrate'],
  'stores add NAME ADDRESS': ['stores create', 'stores new', 'stores save'],
  'stores remove NAME': ['stores delete', 'stores del', 'stores forget'],
  'config set SETTING VALUE': ['set', 'config add', 'config update'],
  'config list': ['settings', 'preferences', 'info'],
  'config unset SETTING': ['unset', 'config remove', 'config rm', 'config delete', 'config reset'],
  doctor: ['check', 'status', 'diagnose', 'ping'],
  completion: ['completions', 'autocomplete'],
  help: ['man', 'usage', 'commands', 'docs', 'documentation', 'browse', 'feedback', 'support', 'issue'],
  'help environment': ['env', 'variables'],
  '--format json': ['export --json', 'import --json', '-f json'],
  '--format ndjson': ['--ndjson', '--jsonl', '-f ndjson', '-f jsonl'],
  '--format csv': ['--csv', '-f csv'],
  '--format tsv': ['--tsv', '-f tsv'],
  '--output json': ['--json', '--as-json', '--format', '--jq', '-j'],
  '--output text': ['--text', '--table', '--pretty'],
  '--store': ['--db', '--database', '--url', '--remote', '--endpoint', '--host', '--server'],
  '--yes': ['--force', '--confirm', '--assume-yes', '-f'],
  '--if-exists update': ['--force', '--overwrite', '--upsert', '--replace', '-f'],
  '--if-exists skip': ['--skip-existing', '--ignore', '--ignore-existing'],
  '--check': ['--dry-run', '--validate'],
  '--dry-run': ['--check', '--preview', '--simulate'],
  '--on-error stop': ['--fail-fast', '--strict', '--abort-on-error'],
  '--out': ['--file', '--to', '--outfile', '--output-file', '-f'],
  '--limit COUNT': ['-n COUNT', '--count', '--max', '--top', '--first', '--head', '-l'],
  '--search': ['--query', '--filter', '--grep', '--contains', '--name', '-n'],
  '--after': ['--offset', '--skip', '--since', '--from', '--start-after'],
  '--name': ['--title'],
  '--tag': ['--tags', '--label', '--type', '--category'],
  '--note': ['--name', '--description', '--comment', '-n'],
  '--expires': ['--ttl', '--expiry', '--expires-in'],
  '--allow': ['--scope', '--scopes', '--rights', '--permissions'],
  '--host': ['--bind', '--address', '--listen', '--hostname'],
  '--concurrency': ['--jobs', '--parallel', '--threads', '--workers', '-j'],
  '--verbose': ['--debug', '--trace', '-d'],
  '--quiet': ['--silent'],
  '--no-input': ['--input', '--non-interactive', '--noninteractive', '--no-prompt', '--batch'],
  '--no-color': ['--no-colour', '--plain', '--no-ansi'],
}

/** The option for an excess argument. Hints repeat the argument, so commands that could get a token or a password are not listed. */
export const optionForArgument: Readonly<Record<string, string>> = {
  create: '--name',
  update: '--name',
  list: '--search',
  export: '--out',
  serve: '--store',
  doctor: '--store',
}

/**
 * The suggestion for an unknown command or option, if there is one.
 *
 * @param next the words after it, which the suggestion repeats
 */
export function didYouMean(word: string, path: string, known: readonly string[], next: readonly string[] = []): string | undefined {
  const name = word.toLowerCase()
  const typed = [`${path} ${name}`.trim(), ...(name.startsWith('-') ? [name, `${name} ${next[0]?.replace(/^\d+$/, 'COUNT')}`] : [])]
  const isKnown = (meant: string) => !meant.startsWith('-') || known.includes(meant.split(' ')[0] ?? '')
  const fits = ([meant, words]: [string, readonly string[]]) => isKnown(meant) && words.some((habit) => typed.includes(habit))
  const [meant] = Object.entries(habits).find(fits) ?? []
  if (meant?.startsWith('-')) return `Did you mean ${filled(meant, next.slice(0, 1)).replace(' COUNT', '')}?`
  if (meant !== undefined) return `Did you mean: plants ${filled(meant, next)}`
  if (/^-[^-]/.test(word)) return undefined
  // A suggestion that removes something or weakens security must begin like the word.
  const isRisky = (guess: string) => /^(delete|remove|revoke|unset|logout|--allow-)/.test(guess)
  const beginning = (text: string) => text.slice(0, text.startsWith('--') ? 4 : 3)
  const guesses = similar(word, known).filter((guess) => !isRisky(guess) || beginning(guess) === beginning(word))
  return guesses.length === 0 ? undefined : `Did you mean ${guesses.length > 1 ? 'one of ' : ''}${guesses.join(', ')}?`
}

/** What is meant, with the words that were given for it, where there are no options among them. */
function filled(meant: string, words: readonly string[]): string {
  const left = words.some((word) => word.startsWith('-')) ? [] : [...words]
  const text = meant.replace(/\b(COUNT|FILE|ID|STORE|TEXT)\b/g, (name) => {
    const [first] = left
    if (first === undefined || (/COUNT|ID/.test(name) && !/^\d+$/.test(first))) return name
    return shellWord(left.splice(0, name === 'TEXT' ? left.length : 1).join(' '))
  })
  return text === meant ? meant : [text, ...left.map(shellWord)].join(' ')
}
