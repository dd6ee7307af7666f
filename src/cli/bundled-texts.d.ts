declare module '*?raw' {
  const text: string
  export default text
}

declare module '*?pages' {
  const pages: ReadonlyMap<string, string>
  export default pages
}
