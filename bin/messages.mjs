#!/usr/bin/env node
/*
 * Prints every text in src that a person may read: messages, hints, prompts, descriptions, help
 * and lines of the log, so that somebody can read and compare them all. Each has its line and the
 * function or the key that takes it: `43  usageError()  {flag} is empty`. What the program inserts
 * stands in braces. With words as arguments, only the texts that contain one of them are printed.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { parseAst } from 'rolldown/parseAst'

const root = join(import.meta.dirname, '..')
const words = process.argv.slice(2).map((word) => word.toLowerCase())

for (const path of listSources(join(root, 'src'))) {
  const rows = findTexts(readFileSync(path, 'utf8')).filter(({ text }) => containsWord(text))
  if (rows.length === 0) continue
  const lines = rows.map(({ line, use, text }) => `${line}\t${use}\t${text}\n`)
  process.stdout.write(`## ${relative(root, path)}\n\n${lines.join('')}\n`)
}

/** @param {string} directory */
function listSources(directory) {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter((name) => /(?<!\.d)\.ts$/.test(name))
    .sort()
    .map((name) => join(directory, name))
}

/** @param {string} text */
function containsWord(text) {
  return words.length === 0 || words.some((word) => text.toLowerCase().includes(word))
}

/**
 * Parses the source, because a regular expression would also find texts in comments.
 *
 * @param {string} source
 */
function findTexts(source) {
  /** @type {{ line: number, use: string, text: string }[]} */
  const rows = []
  /** @type {(node: any, use: string) => void} */
  const visit = (node, use) => {
    const text = formatText(node, source)
    if (text !== undefined && isProse(text))
      rows.push({ line: source.slice(0, node.start).split('\n').length, use, text })
    for (const [key, child] of listChildren(node))
      visit(child, describeUse(node, key, source) ?? use)
  }
  visit(parseAst(source, { lang: 'ts' }), '')
  return rows
}

/**
 * Lists the child nodes of a node, each with its key. Imports and types are left out, because
 * people do not read their paths and names.
 *
 * @param {any} node
 * @returns {[string, any][]}
 */
function listChildren(node) {
  return Object.entries(node)
    .flatMap(([key, value]) => [value].flat().map((child) => /** @type {any} */ ([key, child])))
    .filter(
      ([, child]) => typeof child?.type === 'string' && !/^(?:Import|TS.*Type)/.test(child.type),
    )
}

/**
 * Formats a string or a template as one line, and returns undefined for any other node.
 *
 * @param {any} node
 * @param {string} source
 */
function formatText(node, source) {
  if (node.type === 'Literal')
    return typeof node.value === 'string' ? node.value.replaceAll('\n', '⏎') : undefined
  if (node.type !== 'TemplateLiteral') return undefined
  const parts = node.quasis.flatMap(({ value }, index) => {
    const expression = node.expressions[index]
    const expressionCode = expression && source.slice(expression.start, expression.end)
    return expression ? [value.cooked, `{${expressionCode.replace(/\s+/g, ' ')}}`] : [value.cooked]
  })
  return parts.join('').replaceAll('\n', '⏎')
}

/**
 * Whether a text is for people: it has two words or more, and is no SQL, which begins with a
 * keyword in capitals.
 *
 * @param {string} text
 */
function isProse(text) {
  const sql =
    /^\W*(?:ALTER|BEGIN|COMMIT|COPY|CREATE|DELETE|DO|DROP|INSERT|PRAGMA|SELECT|SET|UPDATE|WITH|VALUES)\b/
  return /\p{L}{2,}[^\p{L}]* \S/u.test(text) && !sql.test(text)
}

/**
 * Names the function or the key that takes a child of the node.
 *
 * @param {any} node
 * @param {string} key
 * @param {string} source
 */
function describeUse(node, key, source) {
  if (node.type === 'Property' && key === 'value')
    return `${source.slice(node.key.start, node.key.end)}:`
  if (node.type === 'VariableDeclarator' && node.id.name) return `${node.id.name} =`
  if (node.type === 'FunctionDeclaration') return `${node.id?.name}()`
  if (!['CallExpression', 'NewExpression'].includes(node.type) || key !== 'arguments')
    return undefined
  const callee = node.callee.property ?? node.callee
  return `${source.slice(callee.start, callee.end)}()`
}
