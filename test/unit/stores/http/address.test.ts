import { expect, test } from 'vitest'
import { formatWithScheme, parseHttp } from '../../../../src/stores/http/address.js'

test.each([
  { address: 'http://localhost:4010/v1', scheme: 'https:', expected: 'https://localhost:4010/v1' },
  { address: 'http://[::1]:4010', scheme: 'https:', expected: 'https://[::1]:4010' },
  {
    address: 'http://plants.example.com',
    scheme: 'https:',
    expected: 'https://plants.example.com:80',
  },
  {
    address: 'http://plants.example.com:443',
    scheme: 'https:',
    expected: 'https://plants.example.com',
  },
  {
    address: 'https://plants.example.com',
    scheme: 'http:',
    expected: 'http://plants.example.com:443',
  },
] as const)(
  'the address $address becomes $expected with the scheme $scheme, on the same port',
  ({ address, scheme, expected }) => {
    expect(formatWithScheme(parseHttp(address, 'test'), scheme)).toBe(expected)
  },
)
