import { parseAst } from 'rolldown/parseAst'

/*
 * Finds the code of the messages of errors in a source file, for rules about what messages say. A
 * message is an argument of one of the functions below, or a property of a table of sentences, or
 * the constant that such a call names.
 */

/** The index of the argument that is the message. */
const messageArguments: Record<string, number> = {
  createUsageError: 0,
  createInputError: 0,
  PlantsError: 1,
  createProblem: 1,
}
const messageProperties = ['message']

/** A node of the syntax tree (ESTree), with the members that are read here. */
interface Node {
  type: string
  start: number
  end: number
  callee?: Node
  arguments?: Node[]
  key?: Node
  value?: Node
  id?: Node
  init?: Node | null
  name?: string
  regex?: { pattern: string; flags: string }
}

/** Finds the code of each message that contains a string. */
export function findMessages(source: string): string[] {
  const nodes = listNodes(parseAst(source, { lang: 'ts' }))
  const messages = nodes.flatMap((node) => getMessage(node) ?? [])
  const names = new Set(messages.flatMap(({ type, name }) => (type === 'Identifier' ? [name] : [])))
  const constants = nodes.flatMap(({ type, id, init }) =>
    type === 'VariableDeclarator' && names.has(id?.name) && init ? [init] : [],
  )
  const codes = [...messages, ...constants].map(({ start, end }) => source.slice(start, end))
  return codes.filter((code) => /['"`]/.test(code))
}

function getMessage({ type, callee, arguments: values = [], key, value }: Node): Node | undefined {
  if (type === 'CallExpression' || type === 'NewExpression') {
    const index = messageArguments[callee?.name ?? '']
    return index === undefined ? undefined : values[index]
  }
  const isSentence = type === 'Property' && messageProperties.includes(key?.name ?? '')
  return isSentence ? value : undefined
}

export function listNodes(value: unknown): Node[] {
  if (typeof value !== 'object' || value === null) return []
  const children = Object.values(value).flatMap(listNodes)
  return isNode(value) ? [value, ...children] : children
}

function isNode(value: object): value is Node {
  return 'type' in value && 'start' in value && 'end' in value
}
