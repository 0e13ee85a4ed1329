"""Spreadsheets: Excel and OpenDocument read, Excel written; the packages are the extra `excel`."""
