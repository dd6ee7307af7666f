import { expect, test } from 'vitest'
import { describeSyntaxError } from '../../../src/plant/json-syntax.js'
import { check, fc } from '../../helpers/expect/arbitraries.js'

test.each([
  ['[{"id":1},]', 'there is an extra comma before "]" (column 10)'],
  ['{"id":1,}', 'there is an extra comma before "}" (column 8)'],
  ['[1,,2]', 'there is no value before a comma (column 4)'],
  ['[,1]', 'there is no value before a comma (column 2)'],
  ['{,}', 'there is no key before a comma (column 2)'],
  ['[\n 1\n 2]', 'there is no comma or "]" after a value (line 3, column 2)'],
  ['{"id":1 "name":"x"}', 'there is no comma or "}" after a value (column 9)'],
  ['{"id" 1}', 'there is no colon after a key (column 7)'],
  ['{id:1}', 'a key is not in double quotes (column 2)'],
  ["{'id':1}", 'a key is in other quotes than straight double ones (column 2)'],
  ['[“Rose”]', 'a value is in other quotes than straight double ones (column 2)'],
  ['{"tag":zwölf😀}', '"zwölf" is not a value of JSON (column 8)'],
  ['{"tag":😀zwölf}', '"😀" is not a value of JSON (column 8)'],
  ['["😀",NaN]', '"NaN" is not a value of JSON (column 6)'],
  ['[01]', '"01" is not a value of JSON (column 2)'],
  ['[1.e5]', '"1.e5" is not a value of JSON (column 2)'],
  ['[\ud800]', '"\ufffd" is not a value of JSON (column 2)'],
  ['["a\nb"]', 'a string has a line break that is not escaped (column 4)'],
  ['["a\u0001b"]', 'a string has a control character that is not escaped (column 4)'],
  ['["a\\x"]', 'a string has an invalid escape (column 4)'],
  ['["a', 'a string is not closed (column 2)'],
  ['[1,', 'the text ends too early (column 4)'],
  ['', 'the text ends too early (column 1)'],
  ['{} x', 'more text follows the value (column 4)'],
])('in %j, %s', (text, description) => {
  expect(describeSyntaxError(text)).toBe(description)
})

test('values may follow each other in a sequence, and the position is that in the whole text', () => {
  const text = '{"id":1}\n{"id":2}{"id":3,}'
  expect(describeSyntaxError(text, { isSequence: true })).toBe(
    'there is an extra comma before "}" (line 2, column 16)',
  )
})

test('an error is found in each text that JSON.parse rejects, and in no other', () => {
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
    expect(describeSyntaxError(text) !== 'values are not separated').toBe(!isJson(text))
  })
})

test('a million brackets are read without recursion', () => {
  expect(describeSyntaxError('['.repeat(1_000_000))).toBe(
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
