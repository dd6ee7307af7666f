import { expect, test } from 'vitest'
import { explainSyntaxError } from '../../../src/plant/json-syntax.js'
import { check, fc } from '../../helpers/expect/arbitraries.js'

test.each([
  { text: '[{"id":1},]', description: 'there is an extra comma before "]" (column 10)' },
  { text: '{"id":1,}', description: 'there is an extra comma before "}" (column 8)' },
  { text: '[1,,2]', description: '"," is not a value of JSON (column 4)' },
  { text: '[,1]', description: '"," is not a value of JSON (column 2)' },
  { text: '{,}', description: 'a key is not in straight double quotes (column 2)' },
  { text: '[\n 1\n 2]', description: 'there is no comma or "]" after a value (line 3, column 2)' },
  { text: '{"id":1 "name":"x"}', description: 'there is no comma or "}" after a value (column 9)' },
  { text: '{"id" 1}', description: 'there is no colon after a key (column 7)' },
  { text: '{id:1}', description: 'a key is not in straight double quotes (column 2)' },
  {
    text: "{'id':1}",
    description: 'a key is not in straight double quotes (column 2)',
  },
  {
    text: '[“Rose”]',
    description: 'a value is not in straight double quotes (column 2)',
  },
  { text: '{"tag":zwölf😀}', description: '"zwölf" is not a value of JSON (column 8)' },
  { text: '{"tag":😀zwölf}', description: '"😀" is not a value of JSON (column 8)' },
  { text: '["😀",NaN]', description: '"NaN" is not a value of JSON (column 6)' },
  { text: '[01]', description: '"01" is not a value of JSON (column 2)' },
  { text: '[1.e5]', description: '"1.e5" is not a value of JSON (column 2)' },
  { text: '[\ud800]', description: '"\ufffd" is not a value of JSON (column 2)' },
  {
    text: '["a\nb"]',
    description: 'a string is not closed, or has a character that must be escaped (column 2)',
  },
  {
    text: '["a\u0001b"]',
    description: 'a string is not closed, or has a character that must be escaped (column 2)',
  },
  {
    text: '["a\\x"]',
    description: 'a string is not closed, or has a character that must be escaped (column 2)',
  },
  {
    text: '["a',
    description: 'a string is not closed, or has a character that must be escaped (column 2)',
  },
  { text: '[1,', description: 'the text ends too early (column 4)' },
  { text: '', description: 'the text ends too early (column 1)' },
  { text: '{"id":1},', description: 'a comma follows the value (column 9)' },
  { text: '{} x', description: 'more text follows the value (column 4)' },
])('the error for the JSON $text says that $description', ({ text, description }) => {
  expect(explainSyntaxError(text).description).toBe(description)
})

test('the error for a sequence of values has its position in the whole text', () => {
  const text = '{"id":1}\n{"id":2}{"id":3,}'
  expect(explainSyntaxError(text, { isSequence: true }).description).toBe(
    'there is an extra comma before "}" (line 2, column 16)',
  )
})

test('a comma between the values of a sequence is its error', () => {
  expect(explainSyntaxError('{"id":1},\n{"id":2}', { isSequence: true }).description).toBe(
    'a comma follows the value (column 9)',
  )
})

test('an error is found in each text that JSON.parse rejects, and in no other text', () => {
  const pieces = [
    '[',
    ']',
    '{',
    '}',
    ',',
    ':',
    '"',
    '"a"',
    '1',
    '-0.5e+3',
    '01',
    'null',
    'nul',
    ' ',
  ]
  const texts = fc.array(fc.constantFrom(...pieces, '\\', '\\n', '\n', 'é'), { maxLength: 12 })
  return check(5000, [texts], (parts) => {
    const text = parts.join('')
    const { description } = explainSyntaxError(text)
    expect(description !== 'values are not separated').toBe(!isJson(text))
  })
})

test('a million brackets are parsed without recursion', () => {
  expect(explainSyntaxError('['.repeat(1_000_000)).description).toBe(
    'the text ends too early (column 1000001)',
  )
})

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
