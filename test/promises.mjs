// Prints which tests prove each rule of docs/contract.md: npm run promises
// A rule is a list item or a row of a table, and begins with a comment that has its keys. A key is the name of a file of
// tests, or several words of a title, with dashes between them: of a describe, or of a part of a transcript or an exchange.
// The exit code is 1 if a rule has no test, or a key none.
import { readdirSync, readFileSync } from 'node:fs'
import { join, sep } from 'node:path'
import { pathToFileURL } from 'node:url'

const page = join(import.meta.dirname, '../docs/contract.md')

/** What names tests: files, and titles in them. */
function namedTests() {
  const files = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' }).map((file) =>
    file.replaceAll(sep, '/'),
  )
  return files
    .filter((file) => /\.(?:ts|txt|http)$/.test(file))
    .flatMap((file) => {
      const text = readFileSync(join(import.meta.dirname, file), 'utf8')
      const pattern = file.endsWith('.ts') ? /\bdescribe\b[^'"`\n]*(['"`])(?<title>.*?)\1/g : /^# (?<title>.*)/gm
      const titles = Array.from(text.matchAll(pattern), ({ groups }) => groups.title)
      const named = titles.map((title) => ({ name: `${file}: ${title}`, words: wordsOf(title) }))
      return file.endsWith('.test.ts') ? [{ name: file, path: `/${file}` }, ...named] : named
    })
}

function wordsOf(text) {
  return ` ${text.toLowerCase().replaceAll(/\W+/g, ' ')} `
}

function isNamedBy(key, { path, words }) {
  return path ? path.endsWith(`/${key}.test.ts`) : key.includes('-') && words.includes(wordsOf(key))
}

/** The rules of the page, each with its tests, and with those of its keys that name none. */
export function promises(text = readFileSync(page, 'utf8')) {
  const tests = namedTests()
  const withoutTitles = text.replaceAll(/^\|.*\n\|---.*$/gm, '')
  return Array.from(withoutTitles.matchAll(/^(?:- |\| )(?:<!--(?<keys>.*?)-->)?(?<rule>.*)$/gm), ({ groups }) => {
    const keys = groups.keys?.split(',') ?? []
    const named = keys.map((key) => tests.filter((one) => isNamedBy(key, one)))
    return {
      rule: groups.rule.replaceAll(/\[(.*?)\]\(.*?\)|\*/g, '$1').replace(/(?:[.:;] | \|).*/, ''),
      tests: named.flat().map(({ name }) => name),
      wrongKeys: keys.filter((_, index) => named[index].length === 0),
    }
  })
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  for (const { rule, tests, wrongKeys } of promises()) {
    if (tests.length === 0 || wrongKeys.length > 0) process.exitCode = 1
    const lines = [...tests, ...wrongKeys.map((key) => `NO TEST is named ${key}`)]
    process.stdout.write(`${rule}\n${(lines.length > 0 ? lines : ['NO TEST']).map((line) => `  ${line}\n`).join('')}`)
  }
}
